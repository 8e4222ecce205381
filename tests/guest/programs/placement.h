/* Where threads and pages are, by raw system calls: the programs must not depend on libnuma, whose
 * answers they help to check. A call that fails ends the program with the reason. */
#ifndef PLACEMENT_H
#define PLACEMENT_H

#include "arguments.h"
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_NODES = 64, PAGE = 4096 };

#define NODE_FILE "/sys/devices/system/node/"

/* The numbers of a list such as "0-1,4" in a file of sysfs; their count, -1 without the file. */
static inline int numbers_of(const char *path, int *numbers, int most)
{
    char text[4096] = "";
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    if (!fgets(text, sizeof text, file))
        text[0] = 0;
    fclose(file);
    int count = 0;
    for (char *part = strtok(text, ",\n"); part; part = strtok(NULL, ",\n")) {
        int first, last;
        int read = sscanf(part, "%d-%d", &first, &last);
        if (read == 1)
            last = first;
        for (int n = first; read > 0 && n <= last && count < most; n++)
            numbers[count++] = n;
    }
    return count;
}

/* The CPUs of a node, at least one. */
static inline int cpus_of_node(int node, int *cpus, int most)
{
    char path[96];
    snprintf(path, sizeof path, NODE_FILE "node%d/cpulist", node);
    int count = numbers_of(path, cpus, most);
    if (count < 0)
        fail("there is no node %d", node);
    if (count == 0)
        fail("node %d has no CPU to run on", node);
    return count;
}

static inline int first_cpu_of_node(int node)
{
    int cpu;
    cpus_of_node(node, &cpu, 1);
    return cpu;
}

/* The node of a CPU. */
static inline int node_of_cpu(int cpu)
{
    for (int node = 0; node < MAX_NODES; node++) {
        char path[96];
        snprintf(path, sizeof path, NODE_FILE "node%d/cpu%d", node, cpu);
        if (access(path, F_OK) == 0)
            return node;
    }
    fail("CPU %d is on no node", cpu);
}

/* The calling thread runs on this CPU only, and does so on return. */
static inline void bind_to_cpu(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        fail("cannot run on CPU %d: %s", cpu, strerror(errno));
}

/* The CPUs that this process may use; their count. */
static inline int allowed_cpus(int *cpus, int most)
{
    cpu_set_t set;
    int count = 0;
    if (sched_getaffinity(0, sizeof set, &set))
        fail("cannot ask for the allowed CPUs: %s", strerror(errno));
    for (int cpu = 0; cpu < CPU_SETSIZE && count < most; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus[count++] = cpu;
    return count;
}

/* Fresh memory in small pages, untouched: with huge pages one touch would place 2 MiB at once, and
 * what a thread is given at the end of its stack would place all of the stack. */
static inline void *fresh_memory(size_t bytes)
{
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("no address space for %zu bytes: %s", bytes, strerror(errno));
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    return memory;
}

/* Policy for whole pages: MPOL_BIND or MPOL_PREFERRED to the node; flags as of mbind(2). */
static inline void place_memory(void *memory, size_t bytes, int policy, int node, unsigned flags)
{
    uint64_t nodes = UINT64_C(1) << node;
    if (syscall(SYS_mbind, memory, bytes, policy, &nodes, (unsigned long)MAX_NODES + 1, flags))
        fail("cannot place memory on node %d: %s", node, strerror(errno));
}

/* Touches every page, which gives it a place. */
static inline void touch_pages(void *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PAGE)
        ((volatile char *)memory)[at] = 0;
}

/* Adds the pages of this memory to the count of their node; those without a place are left out. */
static inline void count_pages(void *memory, size_t bytes, long pages[MAX_NODES])
{
    enum { AT_ONCE = 512 };
    for (size_t at = 0; at < bytes;) {
        void *addresses[AT_ONCE];
        int status[AT_ONCE];
        long count = 0;
        for (; count < AT_ONCE && at < bytes; at += PAGE)
            addresses[count++] = (char *)memory + at;
        if (syscall(SYS_move_pages, 0, count, addresses, NULL, status, MPOL_MF_MOVE))
            fail("cannot ask where pages are: %s", strerror(errno));
        for (long i = 0; i < count; i++)
            if (status[i] >= 0 && status[i] < MAX_NODES)
                pages[status[i]]++;
    }
}

/* One line `NAME NODE PAGES` for every node that has some. */
static inline void print_pages(const char *name, const long pages[MAX_NODES])
{
    for (int node = 0; node < MAX_NODES; node++)
        if (pages[node])
            printf("%s %d %ld\n", name, node, pages[node]);
}

#endif
