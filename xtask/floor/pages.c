/* What memory costs that is written once: fresh from the kernel, dropped (MADV_DONTNEED) and free for it to take (MADV_FREE)
 * before, or kept; in small pages and in huge ones. Usage: pages small|huge. Prints, for each, ns and faults per 4 KiB. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#ifndef MADV_FREE
#define MADV_FREE 8
#endif

enum { BYTES = 64 << 20, PAGE = 4096, HUGE = 2 << 20, ROUNDS = 7 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static char *map(int huge)
{
    char *all = mmap(NULL, BYTES + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    char *memory = (char *)(((size_t)all + HUGE - 1) & ~((size_t)HUGE - 1));
    if (madvise(memory, BYTES, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
        perror("madvise");
    return memory;
}

/* Writes a word of each page: the cost of having it, without that of filling it. */
static void touch(char *memory)
{
    for (size_t at = 0; at < BYTES; at += PAGE)
        *(volatile char *)(memory + at) = 1;
}

static void measure(const char *name, int huge, int fresh, int advice)
{
    double times[ROUNDS];
    long count = 0;
    char *memory = map(huge);
    touch(memory);
    for (int round = 0; round < ROUNDS; round++) {
        if (fresh) {
            munmap(memory, BYTES);
            memory = map(huge);
        } else if (advice && madvise(memory, BYTES, advice)) {
            perror("madvise");
            exit(1);
        }
        long before = faults();
        double begin = now();
        touch(memory);
        times[round] = now() - begin;
        count += faults() - before;
    }
    munmap(memory, BYTES);
    qsort(times, ROUNDS, sizeof *times, by_value);
    printf("%s_ns %.1f\n", name, times[ROUNDS / 2] / (BYTES / PAGE));
    printf("%s_faults %.4f\n", name, (double)count / ROUNDS / (BYTES / PAGE));
}

int main(int argc, char **argv)
{
    int huge = argc > 1 && strcmp(argv[1], "huge") == 0;
    measure("fresh", huge, 1, 0);
    measure("dropped", huge, 0, MADV_DONTNEED);
    measure("offered", huge, 0, MADV_FREE);
    measure("kept", huge, 0, 0);
    return 0;
}
