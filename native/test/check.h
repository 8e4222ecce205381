/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A case is a function; a failed check ends its process with status 1 and prints where. */
#ifndef CHECK_H
#define CHECK_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            _Exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* How often something is repeated: `usually` as every submission needs it, `thoroughly` with `cargo xtask test --thorough`. */
static inline int rounds(int usually, int thoroughly)
{
    return getenv("NUMAKIT_THOROUGH") ? thoroughly : usually;
}

struct test {
    const char *name;
    void (*run)(void);
    /* Further variables, "NAME=VALUE", up to NULL. */
    const char *environment[8];
};

extern const struct test PLACING[], AROUND[], CHILDREN[], RANKS[], PHASES[];

/* The two CPUs of the plan, in its order. */
extern int first_cpu, second_cpu;

static inline cpu_set_t mask_of(pthread_t thread)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CHECK(pthread_getaffinity_np(thread, sizeof mask, &mask) == 0);
    return mask;
}

/* The only CPU of a thread, -1 if there are several. */
static inline int only_cpu(pthread_t thread)
{
    cpu_set_t mask = mask_of(thread);
    for (int cpu = 0; CPU_COUNT(&mask) == 1 && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &mask))
            return cpu;
    return -1;
}

static inline bool has_both(pthread_t thread)
{
    cpu_set_t mask = mask_of(thread);
    return CPU_COUNT(&mask) == 2 && CPU_ISSET(first_cpu, &mask) && CPU_ISSET(second_cpu, &mask);
}

/* A thread that waits until it is told to end. */
struct waiting {
    pthread_t id;
    sem_t begun, end;
};

static inline void *wait_for_end(void *argument)
{
    struct waiting *waiting = argument;
    sem_post(&waiting->begun);
    while (sem_wait(&waiting->end))
        continue;
    return NULL;
}

/* On return it runs its function. */
static inline void waiting_begin(struct waiting *waiting, const pthread_attr_t *attributes)
{
    sem_init(&waiting->begun, 0, 0);
    sem_init(&waiting->end, 0, 0);
    CHECK(pthread_create(&waiting->id, attributes, wait_for_end, waiting) == 0);
    while (sem_wait(&waiting->begun))
        continue;
}

static inline void waiting_end(struct waiting *waiting)
{
    sem_post(&waiting->end);
    CHECK(pthread_join(waiting->id, NULL) == 0);
}

#endif
