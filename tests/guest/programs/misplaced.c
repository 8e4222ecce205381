/* misplaced NAME broken|repaired [REPEATS]
 *
 *   cache    all threads read a mapped file; broken, the main thread read it first; repaired, each
 *            thread read its own part
 *   moved    each thread touches an array and uses it; broken, a thread that is not bound goes on
 *            from the next node, as if the scheduler had moved it
 *   turns    threads of two nodes take turns at an array, so that the kernel's balancing moves its
 *            pages after them; repaired, each node has an array of its own
 *   huge     parts of half a huge page, neighbours of different nodes; repaired, of a whole one
 *   uneven   the main thread touches an array of which two threads of node 1 use a quarter each, and one
 *            of nodes 2 and 3; repaired, the users touch it. Each repeat takes 100 ms
 *   bound    each thread touches its part first; broken, a policy binds the array to node 0
 *
 * What the threads of a node use is at least four times its simulated cache. */
#define _GNU_SOURCE
#include "npb.h"
#include "placement.h"
#include <fcntl.h>
#include <omp.h>
#include <time.h>

enum { THREADS = 8, HUGE = 2 << 20, PART = HUGE / sizeof(double), ALL = THREADS * PART };

static void use(double *words, int rounds)
{
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < PART; i++)
            words[i] += 1;
}

static int is_all(const double *words, int count, double value)
{
    for (int i = 0; i < count; i++)
        if (words[i] != value)
            return false;
    return true;
}

/* A mapped file. */

#define FILE_NAME "/tmp/readings"

static const double *readings;
static double sums[THREADS][8];
static int cache_rounds;

static void read_part(int file, int part, int parts)
{
    static double pieces[THREADS][PART];
    size_t bytes = ALL / parts * sizeof(double);
    for (size_t at = 0; at < bytes; at += sizeof *pieces)
        if (pread(file, pieces[omp_get_thread_num()], sizeof *pieces, part * bytes + at) < 0)
            fail("cannot read " FILE_NAME ": %s", strerror(errno));
}

static void cache_prepare(int is_repaired)
{
    static double ones[ALL];
    for (int i = 0; i < ALL; i++)
        ones[i] = 1;
    int file = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, ones, sizeof ones) != sizeof ones || fsync(file) ||
        posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) || posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM))
        fail("cannot write " FILE_NAME ": %s", strerror(errno));
    if (!is_repaired)
        read_part(file, 0, 1);
#pragma omp parallel if (is_repaired)
    if (is_repaired)
        read_part(file, omp_get_thread_num(), THREADS);
    readings = mmap(NULL, sizeof ones, PROT_READ, MAP_SHARED, file, 0);
    if (readings == MAP_FAILED)
        fail("cannot map " FILE_NAME ": %s", strerror(errno));
}

static void cache_work(int repeats)
{
    cache_rounds = repeats;
#pragma omp parallel
    {
        int thread = omp_get_thread_num();
        const double *own = readings + thread * PART;
        for (int round = 0; round < repeats; round++)
            for (int i = 0; i < PART; i++)
                sums[thread][0] += own[i];
    }
}

static int cache_is_right(void)
{
    for (int thread = 0; thread < THREADS; thread++)
        if (sums[thread][0] != (double)PART * cache_rounds)
            return false;
    return true;
}

/* Threads that move. */

static double own[ALL];
static bool may_move[THREADS];
static int moved_rounds;

static void moved_prepare(int is_repaired)
{
#pragma omp parallel
    {
        int cpus[CPU_SETSIZE], thread = omp_get_thread_num(), allowed = allowed_cpus(cpus, CPU_SETSIZE);
        /* The scheduler leaves a thread alone that is bound. */
        if (allowed > 1)
            bind_to_cpu(cpus[thread % allowed]);
        may_move[thread] = allowed > 1 && !is_repaired;
        for (int i = thread * PART; i < (thread + 1) * PART; i++)
            own[i] = 0;
    }
}

static void moved_work(int repeats)
{
    moved_rounds = repeats;
#pragma omp parallel
    {
        int thread = omp_get_thread_num();
        use(own + thread * PART, repeats / 4);
        if (may_move[thread])
            bind_to_cpu((thread + 2) % THREADS);
        use(own + thread * PART, repeats - repeats / 4);
    }
}

static int moved_is_right(void)
{
    return is_all(own, ALL, moved_rounds);
}

/* Pages that move. */

enum { USERS = 2, TURN_MS = 1000 };

static double turns[USERS][4 * PART];
static bool has_own_array;
static long turns_rounds[USERS];

static long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void turns_prepare(int is_repaired)
{
    has_own_array = is_repaired;
#pragma omp parallel
    {
        int thread = omp_get_thread_num();
        if (thread == 0 || (thread == 2 && is_repaired))
            memset(turns[thread / 2], 0, sizeof *turns);
    }
}

static void turns_work(int repeats)
{
    for (int turn = 0; turn < repeats; turn++) {
        int user = turn % USERS;
#pragma omp parallel
        if (omp_get_thread_num() == 2 * user) {
            double *array = turns[has_own_array ? user : 0];
            for (long end = milliseconds() + TURN_MS; milliseconds() < end;) {
                for (int part = 0; part < 4; part++)
                    use(array + part * PART, 1);
                turns_rounds[has_own_array ? user : 0]++;
            }
        }
    }
}

static int turns_is_right(void)
{
    return is_all(turns[0], 4 * PART, turns_rounds[0]) && is_all(turns[1], 4 * PART, turns_rounds[1]);
}

/* Parts that not all nodes use. */

enum { QUARTER = ALL / 4 };

static double uneven[ALL] __attribute__((aligned(PAGE)));
static int uneven_rounds[4];

/* The quarter of a thread, or -1. */
static int quarter_of(int thread)
{
    static const int quarters[THREADS] = {-1, -1, 0, 1, 2, -1, 3, -1};
    return quarters[thread];
}

static void uneven_prepare(int is_repaired)
{
    for (int i = 0; i < ALL && !is_repaired; i++)
        uneven[i] = 0;
}

static void uneven_work(int repeats)
{
    long end = milliseconds() + repeats * 100;
#pragma omp parallel
    {
        int quarter = quarter_of(omp_get_thread_num());
        for (; quarter >= 0 && milliseconds() < end; uneven_rounds[quarter]++)
            for (int i = quarter * QUARTER; i < (quarter + 1) * QUARTER; i++)
                uneven[i] += 1;
    }
}

static int uneven_is_right(void)
{
    for (int quarter = 0; quarter < 4; quarter++)
        if (!is_all(uneven + quarter * QUARTER, QUARTER, uneven_rounds[quarter]))
            return false;
    return true;
}

/* Huge pages. */

static double parts[ALL] __attribute__((aligned(HUGE)));
static bool is_aligned;
static int huge_rounds;

/* Two threads of different nodes are neighbours, unless each has a huge page. */
static double *part_of(int thread)
{
    int place = is_aligned ? 2 * thread : thread % 4 * 2 + thread / 4;
    return parts + (size_t)place * PART / 2;
}

static void huge_touch(int rounds)
{
    double *part = part_of(omp_get_thread_num());
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < PART / 2; i++)
            part[i] += 1;
}

static void huge_prepare(int is_repaired)
{
    is_aligned = is_repaired;
    if (madvise(parts, sizeof parts, MADV_HUGEPAGE))
        fail("no huge pages: %s", strerror(errno));
    /* Written before it is read: what is read first has no huge page of its own. */
#pragma omp parallel
    for (int i = 0; i < PART / 2; i++)
        part_of(omp_get_thread_num())[i] = 1;
}

static void huge_work(int repeats)
{
    huge_rounds = repeats + 1;
#pragma omp parallel
    huge_touch(repeats);
}

static int huge_is_right(void)
{
    for (int thread = 0; thread < THREADS; thread++)
        if (!is_all(part_of(thread), PART / 2, huge_rounds))
            return false;
    return true;
}

/* A policy. */

static double bound[ALL] __attribute__((aligned(PAGE)));
static int bound_rounds;

static void bound_prepare(int is_repaired)
{
    if (!is_repaired)
        place_memory(bound, sizeof bound, MPOL_BIND, 0, 0);
#pragma omp parallel
    use(bound + omp_get_thread_num() * PART, 1);
}

static void bound_work(int repeats)
{
    bound_rounds = repeats + 1;
#pragma omp parallel
    use(bound + omp_get_thread_num() * PART, repeats);
}

static int bound_is_right(void)
{
    return is_all(bound, ALL, bound_rounds);
}

static const struct kernel kernels[] = {
    {"cache", cache_prepare, cache_work, cache_is_right, 90, false, false},
    {"moved", moved_prepare, moved_work, moved_is_right, 80, false, false},
    {"turns", turns_prepare, turns_work, turns_is_right, 12, false, false},
    {"huge", huge_prepare, huge_work, huge_is_right, 200, false, false},
    {"uneven", uneven_prepare, uneven_work, uneven_is_right, 120, false, false},
    {"bound", bound_prepare, bound_work, bound_is_right, 80, false, false},
};

int main(int count, char **words)
{
    if (omp_get_max_threads() != THREADS)
        bad_arguments("it has parts for %d threads, set OMP_NUM_THREADS=%d", THREADS, THREADS);
    return run_kernel(kernels, sizeof kernels / sizeof *kernels, count, words);
}
