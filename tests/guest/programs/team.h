/* A team of threads, one for each of the first allowed CPUs and bound to it, unless they are free:
 * then the test that started the program binds them. A member's body
 * prepares, calls team_begin, does the work to be counted, and calls team_end: the markers stand
 * where all members are ready and where all are done. */
#ifndef TEAM_H
#define TEAM_H

#include "numakit-mark.h"
#include "placement.h"
#include <pthread.h>

struct member {
    int index, cpu, node;
    bool is_free;
    size_t bytes;   /* of memory per member, or of the shared memory */
    long repeats;
    void *shared;   /* the same for all members */
    pthread_barrier_t *barrier;
    void (*body)(struct member *);
};

static inline void team_meet(struct member *member, bool begin)
{
    if (pthread_barrier_wait(member->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        if (begin)
            NUMAKIT_MARK_BEGIN();
        else
            NUMAKIT_MARK_END();
    }
    pthread_barrier_wait(member->barrier);
}

static inline void team_begin(struct member *member)
{
    team_meet(member, true);
}

static inline void team_end(struct member *member)
{
    team_meet(member, false);
}

static inline void *team_start(void *argument)
{
    struct member *member = argument;
    if (member->is_free) {
        member->cpu = sched_getcpu();
        member->node = node_of_cpu(member->cpu);
    } else {
        bind_to_cpu(member->cpu);
    }
    member->body(member);
    return NULL;
}

/* Members for these many threads with equal fields; the calling thread stays on the first CPU, so
 * that what it touches is on the first member's node. */
static inline struct member *team_of(int threads, struct member equal)
{
    int cpus[CPU_SETSIZE];
    int allowed = allowed_cpus(cpus, CPU_SETSIZE);
    if (threads > allowed && !equal.is_free)
        fail("%d threads need as many CPUs, %d are allowed", threads, allowed);
    if (!equal.is_free)
        bind_to_cpu(cpus[0]);
    struct member *team = zeroed(threads, sizeof *team);
    equal.barrier = zeroed(1, sizeof *equal.barrier);
    pthread_barrier_init(equal.barrier, NULL, threads);
    for (int i = 0; i < threads; i++) {
        team[i] = equal;
        team[i].index = i;
        team[i].cpu = equal.is_free ? -1 : cpus[i];
        team[i].node = equal.is_free ? -1 : node_of_cpu(cpus[i]);
    }
    return team;
}

/* Runs the team to its end. `stacks` is an array of stacks of `stack_bytes`, or NULL for the
 * default ones. */
static inline void team_run(struct member *team, int threads, void **stacks, size_t stack_bytes)
{
    pthread_t *ids = zeroed(threads, sizeof *ids);
    for (int i = 0; i < threads; i++) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        int wrong = stacks ? pthread_attr_setstack(&attributes, stacks[i], stack_bytes) : 0;
        if (!wrong)
            wrong = pthread_create(&ids[i], &attributes, team_start, &team[i]);
        if (wrong)
            fail("cannot start thread %d: %s", i, strerror(wrong));
        pthread_attr_destroy(&attributes);
    }
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    free(ids);
}

#endif
