/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loops of all forms that gcc compiles, each iteration counted. Prints a line of results for each case, which is the same
 * with the library and without it; ends with status 1 if an iteration was run twice or not at all.
 *
 * loops list          names of the cases
 * loops CASE [SEED]   runs one */
#define _GNU_SOURCE
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long long ull;

enum { MOST = 1 << 15 };
static unsigned char seen[MOST];
static long failures;
static ull state;

static unsigned below(unsigned limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 20) % limit;
}

static void count(long at)
{
    if (at < 0 || at >= MOST) {
        __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_fetch_add(&seen[at], 1, __ATOMIC_RELAXED);
}

/* Some iterations take longer, so that members steal. */
static void work(long at)
{
    for (volatile int i = 0; i < (at % 17 ? 3 : 60); i++)
        ;
}

static void expect(const char *what, long got, long wanted)
{
    if (got == wanted)
        return;
    if (failures++ < 10)
        printf("%s: %ld instead of %ld\n", what, got, wanted);
}

/* Each of the first ones was counted this often, and no other. */
static void check(const char *what, long iterations, int times)
{
    for (long i = 0; i < MOST; i++) {
        if (seen[i] != (i < iterations ? times : 0))
            expect(what, seen[i], i < iterations ? times : 0);
        seen[i] = 0;
    }
}

#define EACH_SCHEDULE(DO)                                                                                              \
    DO(schedule(dynamic)) DO(schedule(dynamic, 1)) DO(schedule(dynamic, 7)) DO(schedule(dynamic, 1000))                \
    DO(schedule(guided)) DO(schedule(guided, 5)) DO(schedule(runtime)) DO(schedule(static)) DO(schedule(static, 3))    \
    DO(schedule(monotonic : dynamic, 2)) DO(schedule(monotonic : guided)) DO(schedule(monotonic : runtime))            \
    DO(schedule(nonmonotonic : dynamic, 4)) DO(schedule(nonmonotonic : guided, 2)) DO(schedule(nonmonotonic : runtime)) \
    DO(schedule(auto)) DO(schedule(simd : dynamic, 8))

#define TEXT(x) #x
#define PRAGMA(x) _Pragma(TEXT(x))

/* Each schedule over these lengths, in a region of its own and in one that has other loops. */
static const int LENGTHS[] = {0, 1, 2, 3, 5, 16, 100, 1023, 10000};

#define FORM(...)                                                                                                      \
    for (unsigned n = 0; n < sizeof LENGTHS / sizeof *LENGTHS; n++) {                                                  \
        long length = LENGTHS[n], last = -1, sum = 0;                                                                  \
        PRAGMA(omp parallel for __VA_ARGS__ lastprivate(last) reduction(+ : sum))                                      \
        for (int i = 0; i < length; i++) {                                                                             \
            count(i);                                                                                                  \
            work(i);                                                                                                   \
            last = i;                                                                                                  \
            sum += i;                                                                                                  \
        }                                                                                                              \
        expect("lastprivate of a region, " #__VA_ARGS__, last, length ? length - 1 : last);                           \
        expect("sum of a region, " #__VA_ARGS__, sum, length * (length - 1) / 2);                                      \
        last = -1;                                                                                                     \
        PRAGMA(omp parallel)                                                                                           \
        {                                                                                                              \
            PRAGMA(omp for __VA_ARGS__ lastprivate(last))                                                              \
            for (long i = length; i > 0; i -= 1) {                                                                     \
                count(i - 1);                                                                                          \
                last = i;                                                                                              \
            }                                                                                                          \
            PRAGMA(omp for __VA_ARGS__ nowait)                                                                         \
            for (ull i = 0; i < (ull)length; i++) {                                                                    \
                count((long)i);                                                                                        \
                work((long)i);                                                                                         \
            }                                                                                                          \
            PRAGMA(omp for __VA_ARGS__ nowait)                                                                         \
            for (ull i = (ull)length * 3; i > 0; i -= 3)                                                               \
                count((long)i / 3 - 1);                                                                                \
            PRAGMA(omp for __VA_ARGS__ collapse(2))                                                                    \
            for (int i = 0; i < length; i++)                                                                           \
                for (int j = 0; j < 3; j++)                                                                            \
                    if (j == 1)                                                                                        \
                        count(i);                                                                                      \
        }                                                                                                              \
        expect("lastprivate, " #__VA_ARGS__, last, length ? 1 : last);                                                 \
        check(#__VA_ARGS__, length, 5);                                                                                \
    }

static void forms(void)
{
    EACH_SCHEDULE(FORM)
}

/* Loops with random bounds, steps, chunks and teams. */
static void at_random(void)
{
    for (int round = 0; round < 1500; round++) {
        unsigned members = 1 + below(8), chunk = 1 + below(below(4) ? 5 : 300), length = below(below(3) ? 300 : 20000);
        long step = 1 + below(9), begin = (long)below(1000) - 500, end = begin + (long)length * step - below((unsigned)step);
        long real = length ? (end - begin + step - 1) / step : 0, last = -1;
        bool is_short = below(2);
        ull top = ULLONG_MAX - 16;
        end = length ? end : begin;
#pragma omp parallel num_threads(members)
        {
#pragma omp for schedule(dynamic, chunk) lastprivate(last) nowait
            for (long i = begin; i < end; i += step) {
                count((i - begin) / step);
                last = (i - begin) / step;
            }
#pragma omp for schedule(guided, chunk) nowait
            for (long i = end; i > begin; i -= step) {
                count((end - i) / step);
                if (!is_short)
                    work(i);
            }
#pragma omp for schedule(runtime)
            for (ull i = top - (ull)(end - begin); i < top; i += (ull)step)
                count((long)((i - (top - (ull)(end - begin))) / (ull)step));
        }
        expect("lastprivate at random", last, real ? real - 1 : last);
        check("at random", real, 3);
    }
}

/* A chain of loops whose members do not wait, and one that is far behind. */
static void chains(void)
{
    for (int round = 0; round < 20; round++) {
#pragma omp parallel num_threads(4)
        {
            for (int loop = 0; loop < 40; loop++) {
#pragma omp for schedule(dynamic, 2) nowait
                for (int i = 0; i < 64; i++) {
                    count(i);
                    if (i == 5 && loop == round)
                        usleep(3000);
                }
            }
        }
        check("chains", 64, 40);
    }
}

/* A member that waits, in a chain, for what another does a hundred loops later. */
static void flags(void)
{
    int flag = 0;
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 0)
            while (!__atomic_load_n(&flag, __ATOMIC_ACQUIRE))
                sched_yield();
        for (int loop = 0; loop < 12; loop++) {
#pragma omp for schedule(dynamic) nowait
            for (int i = 0; i < 8; i++)
                count(i);
        }
        if (omp_get_thread_num() == 1)
            __atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
    }
    check("flags", 8, 12);
}

static void nested(void)
{
    omp_set_max_active_levels(3);
    for (int round = 0; round < 100; round++) {
#pragma omp parallel for schedule(dynamic) num_threads(3)
        for (int i = 0; i < 6; i++) {
#pragma omp parallel num_threads(2)
            {
#pragma omp for schedule(guided) nowait
                for (int j = 0; j < 50; j++)
                    count(i * 50 + j);
#pragma omp for schedule(runtime)
                for (int j = 0; j < 50; j++)
                    count(i * 50 + j);
            }
#pragma omp parallel for schedule(static) num_threads(2)
            for (int j = 0; j < 50; j++)
                count(i * 50 + j);
#pragma omp parallel sections num_threads(2)
            {
#pragma omp section
                for (int j = 0; j < 25; j++)
                    count(i * 50 + j);
#pragma omp section
                for (int j = 25; j < 50; j++)
                    count(i * 50 + j);
            }
        }
        check("nested", 300, 4);
    }
}

static __attribute__((noinline)) void orphan(int length)
{
#pragma omp for schedule(dynamic, 3)
    for (int i = 0; i < length; i++)
        count(i);
}

static void orphans(void)
{
    orphan(1000);
    check("orphan outside of a region", 1000, 1);
#pragma omp parallel num_threads(4)
    orphan(1000);
    check("orphan in a region", 1000, 1);
#pragma omp parallel if (0)
    orphan(1000);
    check("orphan in a region of one", 1000, 1);
#pragma omp parallel num_threads(4)
    {
#pragma omp single
        {
#pragma omp parallel num_threads(1)
            orphan(500);
        }
#pragma omp barrier
        orphan(500);
    }
    check("orphan in a nested region of one", 500, 2);
}

/* Loops of a team of another size, and of members that have gone. */
static void teams_change(void)
{
    for (int round = 0; round < 300; round++) {
        int members = 1 + (int)below(12);
        omp_set_num_threads(members);
#pragma omp parallel for schedule(dynamic, 2)
        for (int i = 0; i < 500; i++)
            count(i);
        check("teams that change", 500, 1);
    }
}

static void *one_thread(void *unused)
{
#pragma omp parallel for schedule(guided) num_threads(3)
    for (int i = 0; i < 400; i++)
        count(i);
    return unused;
}

static void threads(void)
{
    for (int round = 0; round < 30; round++) {
        pthread_t each[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&each[i], NULL, one_thread, NULL);
        for (int i = 0; i < 4; i++)
            pthread_join(each[i], NULL);
        check("threads", 400, 4);
    }
}

/* More loops than a word has tags, in one region and in many. */
static void many(void)
{
    long sum = 0;
    enum { LOOPS = 530000 };
#pragma omp parallel num_threads(2)
    for (int loop = 0; loop < LOOPS; loop++) {
        long mine = 0;
#pragma omp for schedule(dynamic) nowait
        for (int i = 0; i < 3; i++)
            mine += i + 1;
        __atomic_fetch_add(&sum, mine, __ATOMIC_RELAXED);
    }
    expect("many loops in a region", sum, 6L * LOOPS);
    sum = 0;
    for (int loop = 0; loop < 20000; loop++) {
#pragma omp parallel for schedule(dynamic) num_threads(2) reduction(+ : sum)
        for (int i = 0; i < 3; i++)
            sum += i + 1;
    }
    expect("many regions", sum, 6L * 20000);
}

/* More iterations than fit in a word. */
static void large(void)
{
    ull sum = 0, last = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : sum) lastprivate(last)
    for (ull i = 0; i < 50000001; i++) {
        sum += i;
        last = i;
    }
    expect("large", (long)sum, 50000001L * 50000000 / 2);
    expect("the last of a large one", (long)last, 50000000);
    long times = 0;
#pragma omp parallel for schedule(guided, 1000) reduction(+ : times)
    for (long i = LONG_MIN / 2; i < LONG_MAX / 2; i += LONG_MAX / 1000000)
        times++;
    expect("from end to end", times, 1000001);
}

static void cancelled(void)
{
    long ran = 0, rounds = 0;
    for (int round = 0; round < 200; round++) {
        int found = 0;
#pragma omp parallel num_threads(4)
        {
#pragma omp for schedule(dynamic, 4)
            for (int i = 0; i < 1000; i++) {
                if (i == 300) {
                    __atomic_store_n(&found, 1, __ATOMIC_RELAXED);
#pragma omp cancel for
                }
                __atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
#pragma omp cancellation point for
            }
            /* A loop behind it is whole. */
#pragma omp for schedule(dynamic, 4)
            for (int i = 0; i < 1000; i++) {
                count(i);
#pragma omp cancellation point for
            }
        }
        rounds += found;
        check("behind a cancelled loop", 1000, 1);
    }
    expect("loops that found it", rounds, 200);
    if (omp_get_cancellation() && ran >= 200L * 1000)
        expect("iterations of cancelled loops", ran, 0);
    for (int round = 0; round < 200; round++) {
#pragma omp parallel num_threads(4)
        {
#pragma omp for schedule(dynamic) nowait
            for (int i = 0; i < 100; i++)
                work(i);
#pragma omp cancel parallel if (omp_get_thread_num() == round % 4)
#pragma omp for schedule(dynamic)
            for (int i = 0; i < 100; i++) {
                work(i);
#pragma omp cancellation point for
            }
        }
#pragma omp parallel for schedule(dynamic) num_threads(4)
        for (int i = 0; i < 100; i++)
            count(i);
        check("behind a cancelled region", 100, 1);
    }
}

static void tasks(void)
{
    long sum = 0;
#pragma omp parallel num_threads(4) reduction(task, + : sum)
    {
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 100; i++) {
            count(i);
#pragma omp task in_reduction(+ : sum)
            sum += i;
        }
#pragma omp single
#pragma omp taskloop grainsize(7)
        for (int i = 0; i < 100; i++)
            count(i);
    }
    expect("sum of tasks", sum, 4950);
    check("taskloop", 100, 2);
#pragma omp teams num_teams(2)
#pragma omp distribute parallel for schedule(dynamic)
    for (int i = 0; i < 100; i++)
        count(i);
    check("teams", 100, 1);
    long inclusive = 0;
#pragma omp parallel for schedule(dynamic) linear(inclusive : 2) num_threads(4)
    for (int i = 0; i < 100; i++)
        inclusive += 2;
    expect("linear", inclusive, 200);
}

/* Chunks of a monotonic loop come in order, and ordered regions too. */
static void in_order(void)
{
    for (int round = 0; round < 100; round++) {
        long next = 0, wrong = 0;
#pragma omp parallel num_threads(4)
        {
            long before = -1;
#pragma omp for schedule(monotonic : dynamic, 2) nowait
            for (long i = 0; i < 500; i++) {
                if (i < before)
                    __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
                before = i;
                count(i);
            }
#pragma omp for schedule(dynamic) ordered
            for (long i = 0; i < 500; i++) {
#pragma omp ordered
                if (next++ != i)
                    wrong++;
                count(i);
            }
#pragma omp for schedule(dynamic) ordered(1)
            for (long i = 1; i < 500; i++) {
#pragma omp ordered depend(sink : i - 1)
                count(i);
#pragma omp ordered depend(source)
            }
        }
        count(0);
        expect("in order", wrong, 0);
        check("in order", 500, 3);
    }
}

/* A chunk begins where the program expects it. */
static void chunks(void)
{
#pragma omp parallel num_threads(4)
    {
#pragma omp for schedule(dynamic, 64)
        for (int i = 0; i < 10000; i++) {
            static __thread int before = -2, member_chunk;
            if (i != before + 1 && i % 64)
                __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
            before = i;
            member_chunk = i;
            count(member_chunk);
        }
    }
    check("chunks", 10000, 1);
}

static void schedules_set(void)
{
    static const omp_sched_t KINDS[] = {omp_sched_static, omp_sched_dynamic, omp_sched_guided, omp_sched_auto,
                                        omp_sched_dynamic | omp_sched_monotonic};
    for (int round = 0; round < 200; round++) {
#pragma omp parallel num_threads(4)
        for (unsigned kind = 0; kind < sizeof KINDS / sizeof *KINDS; kind++) {
            omp_set_schedule(KINDS[kind], 1 + round % 5);
#pragma omp for schedule(runtime) nowait
            for (int i = 0; i < 200; i++)
                count(i);
        }
        check("schedules that are set", 200, 5);
    }
}

/* A child has no members of its parent's teams; it begins before there are any, or with one. */
static void forks(void)
{
    for (int round = 0; round < 3; round++) {
        pid_t child = fork();
        if (child == 0) {
            if (round == 0)
                teams_change();
            else
                orphans();
            _exit(failures ? 1 : 0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        expect("child", status, 0);
        if (round == 0)
            omp_set_num_threads(1);
        orphan(100);
        check("parent", 100, 1);
    }
    omp_set_num_threads(4);
    teams_change();
}

static const struct {
    const char *name;
    void (*run)(void);
} CASES[] = {
    {"forms", forms},         {"random", at_random},       {"chains", chains},     {"flags", flags},
    {"nested", nested},       {"orphans", orphans},        {"teams_change", teams_change}, {"threads", threads},
    {"many", many},           {"large", large},            {"cancelled", cancelled}, {"tasks", tasks},
    {"in_order", in_order},   {"chunks", chunks},          {"schedules_set", schedules_set}, {"forks", forks},
};

int main(int words, char **word)
{
    state = words > 2 ? strtoull(word[2], NULL, 10) : 88172645463325252;
    for (unsigned i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        if (words < 2 || strcmp(word[1], "list") == 0) {
            puts(CASES[i].name);
        } else if (strcmp(word[1], CASES[i].name) == 0) {
            CASES[i].run();
            printf("%s: %ld failures\n", word[1], failures);
            return failures != 0;
        }
    }
    return words < 2 || strcmp(word[1], "list") ? 2 : 0;
}
