/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The interface for programs with threads of their own, and the shares under the sanitizer of threads: libgomp itself is not
 * instrumented. members [NODES]: with the library's code compiled in, threads pretend to be on as many nodes. */
#include "numasched.h"
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef COMPILED_IN
#include "sched/nodes.h"
/* The library would read the machine when it is loaded. */
static void begin_library(void)
{
    if (!nodes_pretend("10,16,28;16,10,28;28,28,10"))
        abort();
}
#else
static void begin_library(void)
{
}
#endif

enum { MOST = 100000, MEMBERS = 8 };
static long failures;
static unsigned char seen[MOST];
static pthread_barrier_t barrier;
static numasched_team *team;
/* Written by the member that runs the iteration, read by the one that runs it in the next loop: nothing but the shares orders that within
 * a loop, and a barrier between loops. */
static long values[MOST];

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition) && __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) < 10)                                   \
            printf("line %d: %s\n", __LINE__, #condition);                                                             \
    } while (0)

static long long length_of(int loop)
{
    static const long long LENGTHS[] = {0, 1, 3, 8, 50, 1000, MOST};
    return LENGTHS[loop % 7];
}

static void one_loop(unsigned member, int loop, int chunk)
{
    long long from, to, length = length_of(loop);
    CHECK(numasched_begin(team, member, 0, length, 1, chunk) == 0);
    while (numasched_next(team, member, &from, &to))
        for (long long i = from; i < to; i++) {
            __atomic_fetch_add(&seen[i], 1, __ATOMIC_RELAXED);
            values[i]++;
            for (volatile int k = 0; k < (i % 100 ? 1 : 500); k++)
                ;
        }
    numasched_end(team, member);
}

static void check_loop(long long length, int times)
{
    for (long long i = 0; i < MOST; i++) {
        CHECK(seen[i] == (i < length ? times : 0));
        seen[i] = 0;
    }
}

static void *run_member(void *number)
{
    unsigned member = (unsigned)(size_t)number;
    CHECK(numasched_join(team, member) == 0);
    pthread_barrier_wait(&barrier);
    if (member == 0)
        CHECK(numasched_settle(team) == 0);
    pthread_barrier_wait(&barrier);
    for (int loop = 0; loop < 42; loop++) {
        one_loop(member, loop, 1 + loop % 5);
        pthread_barrier_wait(&barrier);
        if (member == 0)
            check_loop(length_of(loop), 1);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void teams(unsigned members)
{
    pthread_t threads[MEMBERS];
    team = numasched_create(members);
    CHECK(team);
    pthread_barrier_init(&barrier, NULL, members);
    for (unsigned i = 0; i < members; i++)
        pthread_create(&threads[i], NULL, run_member, (void *)(size_t)i);
    for (unsigned i = 0; i < members; i++)
        pthread_join(threads[i], NULL);
    numasched_destroy(team);
    pthread_barrier_destroy(&barrier);
}

/* A chain in which nobody meets: values are each member's own. */
static void *run_chain(void *number)
{
    unsigned member = (unsigned)(size_t)number;
    for (int loop = 0; loop < 2000; loop++) {
        long long from, to;
        CHECK(numasched_begin(team, member, 0, 40, 1, 1) == 0);
        while (numasched_next(team, member, &from, &to))
            for (long long i = from; i < to; i++)
                __atomic_fetch_add(&values[i], 1, __ATOMIC_RELAXED);
        numasched_end(team, member);
    }
    return NULL;
}

static void chain(void)
{
    pthread_t threads[4];
    memset(values, 0, sizeof values);
    team = numasched_create(4);
    for (size_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run_chain, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 40; i++)
        CHECK(values[i] == 2000);
    numasched_destroy(team);
}

static void misuse(void)
{
    long long from = 1, to = 2;
    CHECK(!numasched_create(0) && errno == EINVAL);
    CHECK(!numasched_create(UINT_MAX) && errno == EINVAL);
    team = numasched_create(1);
    CHECK(numasched_join(team, 1) == EINVAL);
    CHECK(numasched_begin(team, 1, 0, 1, 1, 1) == EINVAL);
    CHECK(numasched_begin(team, 0, 0, 1, 0, 1) == EINVAL);
    CHECK(numasched_begin(team, 0, 0, 1, 1, 0) == EINVAL);
    CHECK(!numasched_next(team, 0, &from, &to) && from == 1 && to == 2);
    numasched_end(team, 0);
    CHECK(numasched_begin(team, 0, 9, -1, -5, 100) == 0);
    CHECK(numasched_next(team, 0, &from, &to) && from == 9 && to == -1);
    CHECK(!numasched_next(team, 0, &from, &to));
    numasched_end(team, 0);
    numasched_end(team, 0);
    numasched_destroy(team);
    numasched_destroy(NULL);
    CHECK(strcmp(numasched_version(), NUMASCHED_VERSION) == 0);
}

int main(void)
{
    begin_library();
    misuse();
    for (unsigned members = 1; members <= MEMBERS; members++)
        teams(members);
    chain();
    printf("%ld failures\n", failures);
    return failures != 0;
}
