// A program that maps, touches and unmaps memory again and again next to a large mapping: a process that
// holds its mmap lock for long shows in its slowest round.
//
// Usage: mapping MIB SECONDS; prints `worst_us`, `late_us` (the 99.9th percentile), `usual_us`
// (the median) and `rounds`.

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PIECE (1l << 20)
#define MAX_ROUNDS 10000000l

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void *memory(long bytes)
{
    char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    // Pages of 4 KiB: the kernel looks at each of them.
    madvise(pages, bytes, MADV_NOHUGEPAGE);
    for (long at = 0; at < bytes; at += 4096)
        pages[at] = 1;
    return pages;
}

static int order(const void *one, const void *other)
{
    const float a = *(const float *)one, b = *(const float *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    if (argc != 3 || atol(argv[1]) < 0 || atof(argv[2]) <= 0) {
        fprintf(stderr, "Usage: mapping MIB SECONDS\n");
        return 2;
    }
    if (atol(argv[1]) > 0)
        memory(atol(argv[1]) << 20);
    float *times = calloc(MAX_ROUNDS, sizeof(float));
    if (!times)
        return 1;
    long rounds = 0;
    const double end = now() + atof(argv[2]);
    for (double start = now(); start < end && rounds < MAX_ROUNDS; rounds++) {
        munmap(memory(PIECE), PIECE);
        const double done = now();
        times[rounds] = (done - start) * 1e6;
        start = done;
    }
    qsort(times, rounds, sizeof(float), order);
    printf("worst_us %.1f\nlate_us %.1f\nusual_us %.1f\nrounds %ld\n", times[rounds - 1],
           times[rounds - 1 - rounds / 1000], times[rounds / 2], rounds);
    return 0;
}
