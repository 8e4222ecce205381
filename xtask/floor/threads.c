// The floor of creating a thread where it belongs: pthread_create and pthread_join, alone or by a
// program that pins its threads itself, by attribute.
//
// Usage: threads plain|pinned REPEATS; prints `us`, the median of one create and join.
// `pinned` puts each thread on the second allowed CPU and the main thread on the first, as the
// library does for a plan of these two.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *nothing(void *argument)
{
    return argument;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// The nth allowed CPU alone.
static cpu_set_t only(int nth)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, &allowed) && nth-- == 0)
                CPU_SET(cpu, &one);
    return one;
}

int main(int argc, char **argv)
{
    const int pinned = argc == 3 && strcmp(argv[1], "pinned") == 0;
    const int repeats = argc == 3 ? atoi(argv[2]) : 0;
    if (repeats < 1 || (!pinned && strcmp(argv[1], "plain"))) {
        fprintf(stderr, "Usage: threads plain|pinned REPEATS\n");
        return 2;
    }
    const cpu_set_t first = only(0), second = only(1);
    if (pinned && (CPU_COUNT(&second) == 0 || sched_setaffinity(0, sizeof first, &first)))
        return 1;
    int64_t *took = malloc(repeats * sizeof *took);
    for (int i = 0; took && i < repeats; i++) {
        pthread_attr_t attributes;
        pthread_t id;
        const int64_t start = now();
        pthread_attr_init(&attributes);
        if (pinned)
            pthread_attr_setaffinity_np(&attributes, sizeof second, &second);
        if (pthread_create(&id, pinned ? &attributes : NULL, nothing, NULL) || pthread_join(id, NULL))
            return 1;
        pthread_attr_destroy(&attributes);
        took[i] = now() - start;
    }
    if (!took)
        return 1;
    qsort(took, repeats, sizeof *took, by_size);
    printf("us %.3f\n", took[repeats / 2] / 1e3);
    return 0;
}
