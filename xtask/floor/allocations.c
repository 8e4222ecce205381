/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* allocations SIZE COUNT     allocates and frees a block so often, and prints the CPU time of a pair. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* What the compiler cannot leave out. */
static void *volatile kept;

static void pairs(size_t size, long count)
{
    for (long i = 0; i < count; i++) {
        kept = malloc(size);
        free(kept);
    }
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    size_t size = strtoul(words[1], NULL, 10);
    long number = strtol(words[2], NULL, 10);
    pairs(size, number / 10);
    double begin = nanoseconds();
    pairs(size, number);
    printf("ns_of_a_pair %.3f\n", (nanoseconds() - begin) / (double)number);
    return 0;
}
