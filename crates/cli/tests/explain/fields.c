// Two threads that change fields of their own on one line, of a variable or of an allocated block: fields variable|block.
// C and C++.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct counter {
    volatile long hits, misses;
};

struct stats {
    long before[8];
    struct counter counters[2];
};

static struct stats stats __attribute__((aligned(64)));
static volatile int stop;
static struct counter *used;

__attribute__((noinline)) static struct counter *make_block(void) {
    char *block = (char *)aligned_alloc(64, 1 << 20);
    memset(block, 0, 1 << 20);
    return (struct counter *)(block + 4096);
}

static void *hit(void *unused) {
    while (!stop)
        for (int i = 0; i < 64; i++) used[0].hits = used[0].hits + 1;
    return unused;
}

static void *miss(void *unused) {
    while (!stop)
        for (int i = 0; i < 64; i++) used[1].misses = used[1].misses + 1;
    return unused;
}

int main(int count, char **words) {
    if (count != 2) return fprintf(stderr, "fields variable|block\n"), 2;
    used = strcmp(words[1], "block") ? stats.counters : make_block();
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, hit, NULL);
    pthread_create(&threads[1], NULL, miss, NULL);
    struct timespec seconds = {3, 0};
    nanosleep(&seconds, NULL);
    stop = 1;
    for (int thread = 0; thread < 2; thread++) pthread_join(threads[thread], NULL);
    return used[0].hits < used[1].misses - used[1].misses;
}
