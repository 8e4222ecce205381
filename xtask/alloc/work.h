// What the workloads of `cargo xtask bench alloc` share. Each is called with [THREADS [UNITS [TOUCHES]]], does that fixed
// amount of work and prints `units`. UNITS 0 is the workload's default. TOUCHES is how often each object is written.

#pragma once
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)4096)
#define THREADS 64

struct work {
    int threads;
    long units;
    int touches;
};

static inline void fail(const char *what)
{
    fprintf(stderr, "workload: %s\n", what);
    exit(1);
}

static inline struct work work_of(int argc, char **argv, long units)
{
    struct work work = {2, units, 1};
    if (argc > 1)
        work.threads = atoi(argv[1]);
    if (argc > 2 && atol(argv[2]) > 0)
        work.units = atol(argv[2]);
    if (argc > 3)
        work.touches = atoi(argv[3]);
    if (work.threads < 1 || work.threads > THREADS || work.touches < 0) {
        fprintf(stderr, "Usage: %s [THREADS 1-%d [UNITS [TOUCHES]]]\n", argv[0], THREADS);
        exit(2);
    }
    return work;
}

// xorshift64*: the same sequence in each run. The state must not be 0.
static inline uint64_t next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1DULL;
}

static inline uint64_t seed_of(int thread)
{
    return 0x9E3779B97F4A7C15ULL * (unsigned)(thread + 1);
}

// From low to high, all equally likely.
static inline size_t between(uint64_t *state, size_t low, size_t high)
{
    return low + (size_t)((next(state) >> 33) % (high - low + 1));
}

// From low to high, each order of magnitude equally likely.
static inline size_t skewed(uint64_t *state, size_t low, size_t high)
{
    const double share = (double)(next(state) >> 11) / 9007199254740992.0;
    return (size_t)((double)low * pow((double)high / (double)low, share));
}

// Writes to the object, line after line.
static inline void touch(void *object, size_t size, int touches)
{
    volatile char *bytes = object;
    for (int i = 0; i < touches; i++)
        bytes[(size_t)i * 64 % size]++;
}

// Writes to each page of the bytes from..to.
static inline void touch_pages(void *block, size_t from, size_t to)
{
    volatile char *bytes = block;
    for (size_t at = from; at < to; at += PAGE)
        bytes[at] = 1;
}

static inline void *block_of(size_t size, int touches)
{
    void *block = malloc(size);
    if (!block)
        fail("no memory");
    touch(block, size, touches);
    return block;
}

// One thread of a workload.
struct thread {
    pthread_t id;
    const struct work *work;
    int index;
};

// Runs the body in all threads at once, each with a struct thread.
static inline void run_threads(const struct work *work, void *(*body)(void *))
{
    struct thread threads[THREADS];
    for (int i = 0; i < work->threads; i++) {
        threads[i].work = work;
        threads[i].index = i;
        if (pthread_create(&threads[i].id, NULL, body, &threads[i]))
            fail("no thread");
    }
    for (int i = 0; i < work->threads; i++)
        pthread_join(threads[i].id, NULL);
}

static inline int done(long units)
{
    printf("units %ld\n", units);
    return 0;
}
