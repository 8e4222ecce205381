/* Dependent loads through a random cycle of cache lines, by indices: a chase of its own beside that of numa bench.
 * Usage: chase CPU BYTES MS. Prints the number of loads in a lap, and the median of ns for a load. */
#define _GNU_SOURCE
#include "timed.h"
#include <stdint.h>
#include <sys/mman.h>

enum { LINE = 64, HUGE = 2 << 20, LOADS = 4096, MOST = 100000 };

struct line {
    uint64_t next;
    char rest[LINE - 8];
};

static struct line *map(size_t bytes)
{
    char *all = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    char *memory = (char *)(((size_t)all + HUGE - 1) & ~((size_t)HUGE - 1));
    if (madvise(memory, bytes, MADV_HUGEPAGE))
        perror("madvise");
    return (struct line *)memory;
}

/* A random order of all lines, each of which then names the one after it. */
static void link_up(struct line *lines, size_t count)
{
    uint32_t *order = malloc(count * sizeof *order);
    if (!order)
        exit(1);
    for (size_t at = 0; at < count; at++)
        order[at] = (uint32_t)at;
    srandom(4711);
    for (size_t at = count - 1; at > 0; at--) {
        size_t other = (((size_t)random() << 31) ^ (size_t)random()) % (at + 1);
        uint32_t kept = order[at];
        order[at] = order[other];
        order[other] = kept;
    }
    for (size_t at = 0; at < count; at++)
        lines[order[at]].next = (uint64_t)(uintptr_t)&lines[order[(at + 1) % count]];
    free(order);
}

static size_t lap(const struct line *lines)
{
    size_t count = 0;
    const struct line *at = lines;
    do {
        at = (const struct line *)(uintptr_t)at->next;
        count++;
    } while (at != lines);
    return count;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    bind_to(argv[1]);
    size_t bytes = strtoull(argv[2], NULL, 10), count = bytes / LINE, samples = 0;
    double end = now() + atof(argv[3]) * 1e6;
    struct line *lines = map(bytes);
    link_up(lines, count);
    static double times[MOST];
    printf("lap %zu\n", lap(lines));
    end = now() + atof(argv[3]) * 1e6;
    const struct line *at = lines;
    while ((samples < 5 || now() < end) && samples < MOST) {
        double begin = now();
        for (int load = 0; load < LOADS; load++)
            at = (const struct line *)(uintptr_t)at->next;
        __asm__ volatile("" : : "r"(at) : "memory");
        times[samples++] = (now() - begin) / LOADS;
    }
    printf("ns %.3f\n", median(times, samples));
    return 0;
}
