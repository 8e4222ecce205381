/* ep [M] [--tls parent|own]     default 24 parent
 *
 * Embarrassingly parallel: 2^M pairs of NPB's random numbers (x -> 5^13 x mod 2^46, from 271828183)
 * become Gaussian pairs, their sums and counts per annulus; M = 24 is class S, M = 16 to 24 are
 * verified; from 19 on eight threads have work. Each thread has a megabyte of thread-local arrays.
 * The C library zeroes those of a new thread in the thread that creates it, so they start on the
 * parent's node and all "parallel" traffic goes there; `--tls own` moves them to the thread's node
 * before the region. The kernel's balancing moves them too, in a second or so: write 0 to
 * /proc/sys/kernel/numa_balancing to see the effect in full; `tls_pages_elsewhere_after` tells.
 * Works with libgomp and, in its place, LLVM's libomp. Link with -lm. */
#define _GNU_SOURCE
#include "gate.h"
#include "numakit-mark.h"
#include "placement.h"
#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <time.h>

#define USAGE "usage: ep [M] [--tls parent|own]"

enum { LOG_PAIRS = 16, PAIRS = 1 << LOG_PAIRS, ANNULI = 10, MIN = 16, MAX = 24 };

#define MULTIPLIER UINT64_C(1220703125)
#define SEED UINT64_C(271828183)
#define MASK ((UINT64_C(1) << 46) - 1)

/* Whole pages, so that they can be moved without their neighbours. */
static struct {
    double x[2 * PAIRS];
    double q[ANNULI];
} __attribute__((aligned(PAGE))) mine;
#pragma omp threadprivate(mine)

/* From an independent computation with exact integers. Index: M - 16. */
static const struct {
    double sx, sy;
    long accepted;
} expected[] = {
    {77.72321454195374, 27.905540154722114, 51285},
    {65.06990105121943, -134.17163227022232, 102656},
    {187.3198969612154, -379.7408336054129, 205458},
    {377.64550035691866, 16.262768426731565, 411449},
    {674.1650709778471, -150.81398424204303, 823561},
    {-658.7035127850204, -1025.5286964995046, 1646907},
    {29.552035224638942, -1959.796076774315, 3293537},
    {-801.8784539369984, -5083.561080174397, 6587581},
    {-3247.834652034740, -6958.407078382297, 13176389},
};

struct result {
    double sx, sy, q[ANNULI];
};

/* Exact: 64-bit multiplication keeps the low 46 bits. */
static uint64_t times(uint64_t a, uint64_t b)
{
    return a * b & MASK;
}

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t product = 1;
    for (; exponent; exponent >>= 1, base = times(base, base))
        if (exponent & 1)
            product = times(product, base);
    return product;
}

/* The Gaussian pairs of one batch; counts go to the thread's q. */
static void do_batch(long batch, double *sx, double *sy)
{
    uint64_t seed = times(SEED, power(MULTIPLIER, (uint64_t)batch * 2 * PAIRS));
    for (int i = 0; i < 2 * PAIRS; i++) {
        seed = times(seed, MULTIPLIER);
        mine.x[i] = (double)seed * 0x1p-46;
    }
    for (int i = 0; i < PAIRS; i++) {
        double x = 2 * mine.x[2 * i] - 1, y = 2 * mine.x[2 * i + 1] - 1;
        double t = x * x + y * y;
        if (t > 1)
            continue;
        double factor = sqrt(-2 * log(t) / t);
        x *= factor;
        y *= factor;
        mine.q[(int)fmax(fabs(x), fabs(y))]++;
        *sx += x;
        *sy += y;
    }
}

static struct result compute(long batches)
{
    struct result sum = {0};
#pragma omp parallel
    {
        double sx = 0, sy = 0;
        for (int i = 0; i < ANNULI; i++)
            mine.q[i] = 0;
        for (long batch = omp_get_thread_num(); batch < batches; batch += omp_get_num_threads())
            do_batch(batch, &sx, &sy);
#pragma omp critical
        {
            sum.sx += sx;
            sum.sy += sy;
            for (int i = 0; i < ANNULI; i++)
                sum.q[i] += mine.q[i];
        }
    }
    return sum;
}

/* Adds up where the arrays of all threads are; gives how many pages are not at their thread's. */
static long pages_elsewhere(long pages[MAX_NODES])
{
    long elsewhere = 0;
#pragma omp parallel
    {
        int home = node_of_cpu(sched_getcpu());
        long own[MAX_NODES] = {0};
        count_pages(&mine, sizeof mine, own);
#pragma omp critical
        for (int node = 0; node < MAX_NODES; node++) {
            pages[node] += own[node];
            elsewhere += node == home ? 0 : own[node];
        }
    }
    return elsewhere;
}

/* Thread i runs on the i-th allowed CPU, unless the runtime was asked to bind (OMP_PROC_BIND).
 * Gives the number of threads. */
static int prepare(bool move)
{
    static int cpus[CPU_SETSIZE];
    static long pages[MAX_NODES];
    int threads = omp_get_max_threads(), allowed = allowed_cpus(cpus, CPU_SETSIZE);
    bool bind = omp_get_proc_bind() == omp_proc_bind_false;
    if (bind)
        bind_to_cpu(cpus[0]);
    /* The loader made the main thread's on whatever CPU it ran; here it is no part of the matter. */
    place_memory(&mine, sizeof mine, MPOL_BIND, node_of_cpu(sched_getcpu()), MPOL_MF_MOVE);
#pragma omp parallel num_threads(threads)
    {
        if (bind)
            bind_to_cpu(cpus[omp_get_thread_num() % allowed]);
        if (move)
            place_memory(&mine, sizeof mine, MPOL_BIND, node_of_cpu(sched_getcpu()), MPOL_MF_MOVE);
    }
    long elsewhere = pages_elsewhere(pages);
    print_pages("tls_pages_on_node", pages);
    printf("tls_pages_elsewhere %ld\n", elsewhere);
    if (move && elsewhere)
        fail("%ld pages of thread-local arrays did not move to their thread's node", elsewhere);
    return threads;
}

static void check(int m, const struct result *sum)
{
    const double *q = sum->q;
    double sx = expected[m - MIN].sx, sy = expected[m - MIN].sy;
    long accepted = 0;
    for (int i = 0; i < ANNULI; i++)
        accepted += (long)q[i];
    printf("sx %.15e\nsy %.15e\naccepted %ld\n", sum->sx, sum->sy, accepted);
    for (int i = 0; i < ANNULI; i++)
        printf("annulus %d %ld\n", i, (long)q[i]);
    if (!(fabs(sum->sx - sx) <= 1e-8 * fabs(sx)) || !(fabs(sum->sy - sy) <= 1e-8 * fabs(sy)))
        fail("sums are wrong, expected %.15e %.15e", sx, sy);
    if (accepted != expected[m - MIN].accepted)
        fail("%ld pairs accepted, expected %ld", accepted, expected[m - MIN].accepted);
    printf("verified yes\n");
}

int main(int count, char **words)
{
    bool own = false;
    if (count > 2 && strcmp(words[count - 2], "--tls") == 0) {
        own = strcmp(words[count - 1], "own") == 0;
        if (!own && strcmp(words[count - 1], "parent"))
            bad_arguments(USAGE);
        count -= 2;
    }
    if (count > 2)
        bad_arguments(USAGE);
    int m = count == 2 ? number("M", words[1], MIN, MAX) : MAX;
    struct timespec start, end;
    printf("openmp %s\n", dlsym(RTLD_DEFAULT, "__kmpc_fork_call") ? "llvm" : "gomp");
    printf("tls %s\n", own ? "own" : "parent");
    printf("threads %d\n", prepare(own));
    wait_at_gate();
    while (is_uncounted())
        compute(omp_get_max_threads());
    clock_gettime(CLOCK_MONOTONIC, &start);
    NUMAKIT_MARK_BEGIN();
    struct result sum = compute(1L << (m - LOG_PAIRS));
    NUMAKIT_MARK_END();
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("seconds %.3f\n",
           (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    long pages[MAX_NODES] = {0};
    printf("tls_pages_elsewhere_after %ld\n", pages_elsewhere(pages));
    check(m, &sum);
    return 0;
}
