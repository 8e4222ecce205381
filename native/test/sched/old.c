/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls as GCC 4.8 compiled them, and calls that no compiler makes. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

void GOMP_parallel_start(void (*function)(void *), void *data, unsigned threads);
void GOMP_parallel_end(void);
void GOMP_parallel_loop_dynamic_start(void (*)(void *), void *, unsigned, long, long, long, long);
void GOMP_parallel_loop_guided_start(void (*)(void *), void *, unsigned, long, long, long, long);
void GOMP_parallel_loop_runtime_start(void (*)(void *), void *, unsigned, long, long, long);
bool GOMP_loop_dynamic_start(long, long, long, long, long *, long *);
bool GOMP_loop_dynamic_next(long *, long *);
bool GOMP_loop_guided_start(long, long, long, long, long *, long *);
bool GOMP_loop_guided_next(long *, long *);
bool GOMP_loop_runtime_start(long, long, long, long *, long *);
bool GOMP_loop_runtime_next(long *, long *);
bool GOMP_loop_ull_dynamic_start(bool, unsigned long long, unsigned long long, unsigned long long, unsigned long long,
                                 unsigned long long *, unsigned long long *);
bool GOMP_loop_ull_dynamic_next(unsigned long long *, unsigned long long *);
void GOMP_loop_end(void);
void GOMP_loop_end_nowait(void);
void GOMP_barrier(void);

enum { COUNT = 3000 };
static int seen[COUNT];
static long wrong;

static void count(long from, long to)
{
    for (long i = from; i < to; i++)
        __atomic_fetch_add(&seen[i], 1, __ATOMIC_RELAXED);
}

static void check(const char *what, int times)
{
    for (int i = 0; i < COUNT; i++) {
        if (seen[i] != times && wrong++ < 5)
            printf("%s: %d was run %d times instead of %d\n", what, i, seen[i], times);
        seen[i] = 0;
    }
}

/* The region is the loop. */
static void loop_region(void *next)
{
    bool (*more)(long *, long *) = *(bool (**)(long *, long *))next;
    long from, to;
    while (more(&from, &to))
        count(from, to);
    GOMP_loop_end_nowait();
}

static void one_loop(void (*end)(void))
{
    long from, to;
    if (GOMP_loop_dynamic_start(0, COUNT, 1, 5, &from, &to))
        do
            count(from, to);
        while (GOMP_loop_dynamic_next(&from, &to));
    end();
}

static void loops(void *unused)
{
    long from, to;
    unsigned long long first, behind;
    (void)unused;
    one_loop(GOMP_loop_end);
    if (GOMP_loop_guided_start(COUNT - 1, -1, -1, 1, &from, &to))
        do
            count(to + 1, from + 1);
        while (GOMP_loop_guided_next(&from, &to));
    GOMP_loop_end_nowait();
    if (GOMP_loop_runtime_start(0, COUNT, 1, &from, &to))
        do
            count(from, to);
        while (GOMP_loop_runtime_next(&from, &to));
    GOMP_loop_end_nowait();
    if (GOMP_loop_ull_dynamic_start(true, 0, COUNT, 1, 1, &first, &behind))
        do
            count((long)first, (long)behind);
        while (GOMP_loop_ull_dynamic_next(&first, &behind));
    GOMP_loop_end();
}

static void in_region(void (*function)(void *), void *data, unsigned threads)
{
    GOMP_parallel_start(function, data, threads);
    function(data);
    GOMP_parallel_end();
}

static void inner(void *unused)
{
    (void)unused;
    one_loop(GOMP_loop_end_nowait);
}

static void outer(void *unused)
{
    (void)unused;
    one_loop(GOMP_loop_end);
    in_region(inner, NULL, 1);
    one_loop(GOMP_loop_end);
}

static void old_regions(void)
{
    bool (*dynamic)(long *, long *) = GOMP_loop_dynamic_next, (*guided)(long *, long *) = GOMP_loop_guided_next,
         (*runtime)(long *, long *) = GOMP_loop_runtime_next;
    for (unsigned round = 0; round < 200; round++) {
        unsigned threads = 1 + round % 5;
        GOMP_parallel_loop_dynamic_start(loop_region, &dynamic, threads, 0, COUNT, 1, 2);
        loop_region(&dynamic);
        GOMP_parallel_end();
        GOMP_parallel_loop_guided_start(loop_region, &guided, threads, 0, COUNT, 1, 2);
        loop_region(&guided);
        GOMP_parallel_end();
        GOMP_parallel_loop_runtime_start(loop_region, &runtime, threads, 0, COUNT, 1);
        loop_region(&runtime);
        GOMP_parallel_end();
        check("regions of one loop", 3);
        in_region(loops, NULL, threads);
        check("loops in a region", 4);
        in_region(outer, NULL, threads);
        check("regions in a region", 2 + (int)threads);
    }
}

/* One end too many is a barrier, and a loop that is begun in another one ends that. */
static void odd(void *unused)
{
    long from, to;
    (void)unused;
    one_loop(GOMP_loop_end);
    GOMP_loop_end();
    one_loop(GOMP_loop_end);
    while (GOMP_loop_dynamic_start(0, 0, 1, 1, &from, &to))
        ;
    GOMP_barrier();
    one_loop(GOMP_loop_end);
}

static void odd_calls(void)
{
    for (int round = 0; round < 100; round++) {
        in_region(odd, NULL, 4);
        check("odd calls", 3);
    }
}

static void on_signal(int number)
{
    (void)number;
}

/* Handlers interrupt takes and steals. */
static void interrupted(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    old_regions();
    setitimer(ITIMER_PROF, &never, NULL);
}

static void *in_thread(void *unused)
{
    for (;;) {
        in_region(inner, NULL, 2);
        pthread_testcancel();
    }
    return unused;
}

/* A thread that is cancelled between its regions leaves those of others whole. */
static void thread_cancelled(void)
{
    for (int round = 0; round < 20; round++) {
        pthread_t thread;
        pthread_create(&thread, NULL, in_thread, NULL);
        usleep(2000);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        memset(seen, 0, sizeof seen);
        in_region(loops, NULL, 3);
        check("after a thread was cancelled", 4);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} CASES[] = {
    {"old_regions", old_regions},
    {"odd_calls", odd_calls},
    {"interrupted", interrupted},
    {"thread_cancelled", thread_cancelled},
};

int main(int words, char **word)
{
    for (unsigned i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        if (words < 2 || strcmp(word[1], "list") == 0) {
            puts(CASES[i].name);
        } else if (strcmp(word[1], CASES[i].name) == 0) {
            CASES[i].run();
            printf("%s: %ld failures\n", word[1], wrong);
            return wrong != 0;
        }
    }
    return words < 2 || strcmp(word[1], "list") ? 2 : 0;
}
