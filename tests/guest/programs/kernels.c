/* kernels NAME [REPEATS]
 *
 * Small parallel programs whose memory is on other nodes than their threads in different ways, for
 * comparing estimates of traffic with what the simulator counts. One bound thread for each of eight
 * CPUs; the work is between the markers, and its result is checked. What the threads of a node use
 * is at least four times its simulated cache.
 *   main      the main thread touched the array first
 *   parallel  each thread touched its slice first
 *   shifted   each thread uses the slice of one of the next node
 *   three     three arrays: touched by the main thread, by their threads, shifted
 *   tls       thread-local storage, which the C library touches in the creating thread
 *   pool      lists of objects, of which half were made by other threads
 *   cg        conjugate gradient with a sparse matrix; the main thread touched the vectors
 *   mg        two grids; the main thread touched the right side
 *   fft       transforms of rows, transposed in between
 *   sort      keys are counted and moved to the places of their buckets */
#define _GNU_SOURCE
#include "arrays.h"
#include "gate.h"
#include "solvers.h"

#define USAGE "usage: kernels NAME [REPEATS]"

static void nothing(void)
{
}

static void none(struct member *member)
{
    (void)member;
}

static const struct kernel {
    const char *name;
    void (*prepare)(void);
    void (*touch)(struct member *);
    void (*link)(struct member *);
    void (*work)(struct member *);
    double (*expected)(long repeats);
    long repeats;
} kernels[] = {
    {"main", array_main, none, none, array_work, array_expected, 24},
    {"parallel", array_own, array_touch, none, array_work, array_expected, 24},
    {"shifted", array_own, array_touch, none, shifted_work, array_expected, 24},
    {"three", three_prepare, three_touch, none, three_work, three_expected, 14},
    {"tls", nothing, none, none, local_work, local_expected, 40},
    {"pool", pool_prepare, pool_touch, pool_link, pool_work, pool_expected, 60},
    {"cg", cg_prepare, cg_touch, none, cg_work, each_expected, 20},
    {"mg", mg_prepare, mg_touch, none, mg_work, each_expected, 8},
    {"fft", fft_prepare, fft_touch, none, fft_work, each_expected, 6},
    {"sort", sort_prepare, sort_touch, none, sort_work, each_expected, 12},
};

static const struct kernel *kernel;

static void body(struct member *member)
{
    kernel->touch(member);
    pthread_barrier_wait(member->barrier);
    kernel->link(member);
    if (member->index == 0)
        wait_at_gate();
    team_begin(member);
    kernel->work(member);
    team_end(member);
}

static const struct kernel *named(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    fail("there is no kernel '%s'", name);
}

int main(int count, char **arguments)
{
    if (count < 2 || count > 3)
        bad_arguments(USAGE);
    kernel = named(arguments[1]);
    long repeats = count > 2 ? number("REPEATS", arguments[2], 1, 1000000) : kernel->repeats;
    struct member *team = team_of(THREADS, (struct member){.repeats = repeats, .body = body});
    kernel->prepare();
    team_run(team, THREADS, NULL, 0);
    double sum = 0, expected = kernel->expected(repeats);
    for (int i = 0; i < THREADS; i++)
        sum += results[i];
    if (sum != expected)
        fail("the result of %s is %.17g, expected %.17g", kernel->name, sum, expected);
    printf("kernel %s\nverified yes\n", kernel->name);
    return 0;
}
