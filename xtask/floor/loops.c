/* loops chunk|loop|uniform|fine static|runtime     times of OpenMP loops of two members
 *
 * chunk: ns of a chunk that a member takes from its own share, while nobody steals. loop: ns of a loop with an iteration for
 * each member, with its barrier. uniform: ns of a loop whose iterations take 100 ns each, by the iteration. fine: the same
 * with iterations of a nanosecond. `static` is compiled with schedule(static), `runtime` with schedule(runtime). */
#define _GNU_SOURCE
#include "timed.h"
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool GOMP_loop_maybe_nonmonotonic_runtime_start(long, long, long, long *, long *);
bool GOMP_loop_maybe_nonmonotonic_runtime_next(long *, long *);
void GOMP_loop_end(void);

enum { MEMBERS = 2, OWN = 48 };

static double chunk(void)
{
    double best = 1e9;
    for (int round = 0; round < 2000; round++) {
        double ns = 0;
#pragma omp parallel num_threads(MEMBERS)
        {
            long from, to;
            bool more = GOMP_loop_maybe_nonmonotonic_runtime_start(0, 1 << 22, 1, &from, &to);
            int taken = 0;
            double begin = now();
            while (more && taken < OWN) {
                more = GOMP_loop_maybe_nonmonotonic_runtime_next(&from, &to);
                taken++;
            }
            double end = now();
            if (omp_get_thread_num() == 0)
                ns = more ? (end - begin) / OWN : 1e9;
            while (more && GOMP_loop_maybe_nonmonotonic_runtime_next(&from, &to))
                ;
            GOMP_loop_end();
        }
        best = ns < best ? ns : best;
    }
    return best;
}

static double loop(bool is_static)
{
    enum { LOOPS = 20000 };
    double ns = 0;
#pragma omp parallel num_threads(MEMBERS)
    {
        long sink = 0;
#pragma omp barrier
        double begin = now();
        if (is_static)
            for (int i = 0; i < LOOPS; i++) {
#pragma omp for schedule(static)
                for (int member = 0; member < MEMBERS; member++)
                    __asm__ volatile("" : "+r"(sink));
            }
        else
            for (int i = 0; i < LOOPS; i++) {
#pragma omp for schedule(runtime)
                for (int member = 0; member < MEMBERS; member++)
                    __asm__ volatile("" : "+r"(sink));
            }
        double end = now();
        if (omp_get_thread_num() == 0)
            ns = (end - begin) / LOOPS;
    }
    return ns;
}

static double iteration(bool is_static, long count, int work)
{
    double begin = now();
    if (is_static) {
#pragma omp parallel for schedule(static) num_threads(MEMBERS)
        for (long i = 0; i < count; i++)
            for (int step = 0; step < work; step++)
                __asm__ volatile("" ::: "memory");
    } else {
#pragma omp parallel for schedule(runtime) num_threads(MEMBERS)
        for (long i = 0; i < count; i++)
            for (int step = 0; step < work; step++)
                __asm__ volatile("" ::: "memory");
    }
    return (now() - begin) / (double)count;
}

int main(int words, char **word)
{
    if (words != 3)
        return 2;
    bool is_static = strcmp(word[2], "static") == 0;
    double ns = 0;
    iteration(is_static, 1000, 1);
    if (strcmp(word[1], "chunk") == 0)
        ns = chunk();
    else if (strcmp(word[1], "loop") == 0)
        ns = loop(is_static);
    else if (strcmp(word[1], "uniform") == 0)
        ns = iteration(is_static, 400000, 300);
    else if (strcmp(word[1], "fine") == 0)
        ns = iteration(is_static, 50000000, 3);
    else
        return 2;
    printf("ns %.3f\n", ns);
    return 0;
}
