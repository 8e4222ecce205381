/* stream CPUNODE MEMNODE MIB [write]
 * stream all MIB [write]
 *
 * A CPU of CPUNODE reads (or writes) every line of MIB of memory on MEMNODE exactly once, between
 * the markers. `all` does that for every pair of nodes, a region for each: a matrix that sums the
 * regions has MIB x 2^20 / 64 in every cell. That calibrates the simulator. */
#define _GNU_SOURCE
#include "lines.h"
#include "numakit-mark.h"
#include "placement.h"

#define USAGE "usage: stream CPUNODE MEMNODE MIB [write] | stream all MIB [write]"

static void stream(int cpu_node, int memory_node, size_t bytes, bool write)
{
    long pages[MAX_NODES] = {0};
    bind_to_cpu(first_cpu_of_node(cpu_node));
    char *memory = fresh_memory(bytes);
    place_memory(memory, bytes, MPOL_BIND, memory_node, 0);
    touch_pages(memory, bytes);
    uint64_t sum = 0;
    NUMAKIT_MARK_BEGIN();
    if (write)
        write_lines(memory, bytes, 1);
    else
        sum = read_lines(memory, bytes);
    NUMAKIT_MARK_END();
    count_pages(memory, bytes, pages);
    if (pages[memory_node] != (long)(bytes / PAGE))
        fail("%ld of %zu pages are on node %d", pages[memory_node], bytes / PAGE, memory_node);
    if (write)
        sum = bytes / LINE - read_lines(memory, bytes);
    if (sum)
        fail("the memory does not hold what was written");
    munmap(memory, bytes);
    printf("lines %d %d %zu\n", cpu_node, memory_node, bytes / LINE);
}

static void stream_all(size_t bytes, bool write)
{
    int with_cpus[MAX_NODES], with_memory[MAX_NODES];
    int readers = numbers_of(NODE_FILE "has_cpu", with_cpus, MAX_NODES);
    int homes = numbers_of(NODE_FILE "has_memory", with_memory, MAX_NODES);
    if (readers < 1 || homes < 1)
        fail("the kernel shows no nodes in " NODE_FILE);
    for (int i = 0; i < readers; i++)
        for (int k = 0; k < homes; k++)
            stream(with_cpus[i], with_memory[k], bytes, write);
}

int main(int count, char **words)
{
    bool write = count > 3 && strcmp(words[count - 1], "write") == 0;
    count -= write;
    if (count == 3 && strcmp(words[1], "all") == 0) {
        stream_all(number("MIB", words[2], 1, 4096) << 20, write);
        return 0;
    }
    if (count != 4)
        bad_arguments(USAGE);
    stream(number("CPUNODE", words[1], 0, MAX_NODES - 1),
           number("MEMNODE", words[2], 0, MAX_NODES - 1),
           number("MIB", words[3], 1, 4096) << 20, write);
    return 0;
}
