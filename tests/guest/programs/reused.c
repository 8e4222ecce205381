/* reused WAY FROM TO     blocks that a thread on CPU TO allocates and uses for a while
 *
 * `handed`: a thread on CPU FROM has allocated, written and freed their memory before; `fresh`: nobody has. All are of the one
 * arena, and no memory is given back. */
#define _GNU_SOURCE
#include "arguments.h"
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>

enum { BLOCKS = 96, BYTES = 512 << 10, STEPS = 40000000 };

static char *blocks[BLOCKS];

static void bind(long cpu)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(cpu, &mask);
    if (sched_setaffinity(0, sizeof mask, &mask))
        fail("cannot run on CPU %ld", cpu);
}

static void write_all(void)
{
    for (int at = 0; at < BLOCKS; at++)
        for (size_t byte = 0; byte < BYTES; byte += 64)
            blocks[at][byte] = 1;
}

__attribute__((noinline)) static void of_first(void)
{
    for (int at = 0; at < BLOCKS; at++)
        if (!(blocks[at] = malloc(BYTES)))
            fail("no memory");
    write_all();
    for (int at = 0; at < BLOCKS; at++)
        free(blocks[at]);
}

__attribute__((noinline)) static void of_second(void)
{
    for (int at = 0; at < BLOCKS; at++)
        if (!(blocks[at] = malloc(BYTES)))
            fail("no memory");
    write_all();
}

static void *work(void *cpu)
{
    uint64_t state = 88172645463325252;
    bind((long)(intptr_t)cpu);
    of_second();
    for (long step = 0; step < STEPS; step++) {
        state = state * 6364136223846793005 + 1442695040888963407;
        blocks[(state >> 40) % BLOCKS][(state >> 20) % BYTES]++;
    }
    return NULL;
}

int main(int count, char **words)
{
    pthread_t thread;
    if (count != 4)
        bad_arguments("usage: reused handed|fresh FROM TO");
    long from = number("FROM", words[2], 0, 1023), to = number("TO", words[3], 0, 1023);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_ARENA_MAX, 1);
    bind(from);
    if (strcmp(words[1], "handed") == 0)
        of_first();
    if (pthread_create(&thread, NULL, work, (void *)(intptr_t)to))
        fail("cannot create a thread");
    pthread_join(thread, NULL);
    return 0;
}
