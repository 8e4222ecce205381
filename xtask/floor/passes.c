/* One thread reads, writes and copies memory that no cache holds: the loops of a compiler and of the C library.
 * Usage: passes CPU BYTES MS. Prints medians in GB/s; a copy counts what it reads and what it writes. */
#define _GNU_SOURCE
#include "timed.h"
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Lines that are mostly zero are faster to write on some CPUs: the same byte as numa bench has. */
enum { HUGE = 2 << 20, MOST = 10000, BYTE = 0x5a };

typedef double vector __attribute__((vector_size(64)));

static char *map(size_t bytes)
{
    char *all = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    char *memory = (char *)(((size_t)all + HUGE - 1) & ~((size_t)HUGE - 1));
    if (madvise(memory, bytes, MADV_HUGEPAGE))
        perror("madvise");
    memset(memory, BYTE, bytes);
    return memory;
}

static size_t bytes;
static char *one, *two;

/* Several sums, so that none of them waits for an addition. */
static size_t reads(void)
{
    vector sums[4] = {{0}};
    for (const char *half = one;; half = two) {
        const vector *from = (const vector *)half;
        for (size_t at = 0; at < bytes / sizeof(vector); at += 4)
            for (int sum = 0; sum < 4; sum++)
                sums[sum] += from[at + (size_t)sum];
        if (half == two)
            break;
    }
    __asm__ volatile("" : : "r"(sums) : "memory");
    return 2 * bytes;
}

static size_t writes(void)
{
    for (char *half = one;; half = two) {
        volatile vector *to = (volatile vector *)half;
        vector value;
        memset(&value, BYTE, sizeof value);
        for (size_t at = 0; at < bytes / sizeof(vector); at++)
            to[at] = value;
        if (half == two)
            return 2 * bytes;
    }
}

static size_t copies(void)
{
    volatile vector *to = (volatile vector *)two;
    const vector *from = (const vector *)one;
    for (size_t at = 0; at < bytes / sizeof(vector); at++)
        to[at] = from[at];
    return 2 * bytes;
}

static void measure(const char *name, size_t (*pass)(void), double ms)
{
    static double rates[MOST];
    size_t samples = 0;
    pass();
    double end = now() + ms * 1e6;
    while ((samples < 5 || now() < end) && samples < MOST) {
        double begin = now();
        size_t moved = pass();
        rates[samples++] = (double)moved / (now() - begin);
    }
    printf("%s %.3f\n", name, median(rates, samples));
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    bind_to(argv[1]);
    bytes = strtoull(argv[2], NULL, 10) / 2 / 256 * 256;
    one = map(bytes);
    two = map(bytes);
    measure("read", reads, atof(argv[3]));
    measure("write", writes, atof(argv[3]));
    measure("copy", copies, atof(argv[3]));
    return 0;
}
