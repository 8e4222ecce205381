/* npb NAME broken|repaired [REPEATS]
 *
 *   cg     products of a sparse matrix, with columns near the diagonal, and a vector
 *   is     each thread sorts its part of the keys into buckets
 *   join   keys without order are looked up in a hash table of a line each; repaired, each thread
 *          has the table of its node
 *   mixed  three arrays in turn, each in regions of its own: touched by the main thread, by the
 *          threads that use them, by those of the next node; repaired, all by their users
 *   store  the two threads of node 1 use what the main thread loaded
 *
 * Broken, the main thread touches all arrays first. What the threads of a node use is at least four
 * times its simulated cache. */
#define _GNU_SOURCE
#include "npb.h"
#include <omp.h>

enum { NODES = 4, ROWS = 1 << 17, EACH = 8, BAND = 1024 };

static double element[ROWS * EACH], p[ROWS], q[ROWS];
static int column[ROWS * EACH];

static uint64_t mixed_up(uint64_t value)
{
    value = (value ^ value >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return (value ^ value >> 29) * UINT64_C(0xbf58476d1ce4e5b9) >> 7;
}

static void cg_prepare(int is_repaired)
{
#pragma omp parallel for schedule(static) if (is_repaired)
    for (int i = 0; i < ROWS; i++) {
        p[i] = 1;
        q[i] = 0;
        for (int k = i * EACH; k < (i + 1) * EACH; k++) {
            int near = i - BAND + (int)(mixed_up(k) % (2 * BAND));
            column[k] = near < 0 ? 0 : near >= ROWS ? ROWS - 1 : near;
            element[k] = 1.0 / EACH;
        }
    }
}

static void cg_work(int repeats)
{
    for (int repeat = 0; repeat < repeats; repeat++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < ROWS; i++) {
            double sum = 0;
            for (int k = i * EACH; k < (i + 1) * EACH; k++)
                sum += element[k] * p[column[k]];
            q[i] = sum;
        }
#pragma omp parallel for schedule(static)
        for (int i = 0; i < ROWS; i++)
            p[i] = q[i];
    }
}

/* Averages of ones are ones. */
static int cg_is_right(void)
{
    for (int i = 0; i < ROWS; i++)
        if (p[i] != 1)
            return false;
    return true;
}

enum { KEYS = 1 << 21, LOG_BUCKETS = 6, BUCKETS = 1 << LOG_BUCKETS };

static uint32_t keys[KEYS], sorted[KEYS];

static void is_prepare(int is_repaired)
{
#pragma omp parallel for schedule(static) if (is_repaired)
    for (int i = 0; i < KEYS; i++) {
        keys[i] = (uint32_t)mixed_up(i);
        sorted[i] = 0;
    }
}

static int bucket_of(uint32_t key)
{
    return key >> (32 - LOG_BUCKETS);
}

static void part_of(int thread, int threads, int *first, int *last)
{
    *first = (int)((long)KEYS * thread / threads);
    *last = (int)((long)KEYS * (thread + 1) / threads);
}

static void sort_part(int first, int last)
{
    int place[BUCKETS] = {0};
    for (int i = first; i < last; i++)
        place[bucket_of(keys[i])]++;
    for (int bucket = 0, before = first; bucket < BUCKETS; bucket++) {
        int count = place[bucket];
        place[bucket] = before;
        before += count;
    }
    for (int i = first; i < last; i++)
        sorted[place[bucket_of(keys[i])]++] = keys[i];
}

static void is_work(int repeats)
{
#pragma omp parallel
    {
        int first, last;
        part_of(omp_get_thread_num(), omp_get_num_threads(), &first, &last);
        for (int repeat = 0; repeat < repeats; repeat++)
            sort_part(first, last);
    }
}

/* Buckets fall only where a part begins. */
static int is_is_right(void)
{
    int falls = 0;
    for (int i = 1; i < KEYS; i++)
        falls += bucket_of(sorted[i]) < bucket_of(sorted[i - 1]);
    return falls == omp_get_max_threads() - 1;
}

/* A place of a hash table: a line. */
struct place {
    uint64_t key, value[7];
};

enum { PLACES = 1 << 17, PROBES = 1 << 16 };

static struct place table[NODES][PLACES];
static bool has_tables;
static uint64_t found;

static void join_prepare(int is_repaired)
{
    has_tables = is_repaired;
#pragma omp parallel num_threads(NODES * 2) if (is_repaired)
    {
        int thread = omp_get_thread_num();
        for (int i = 0; i < PLACES && thread % 2 == 0; i++)
            table[thread / 2][i] = (struct place){.key = i, .value = {1}};
    }
}

static void join_work(int repeats)
{
#pragma omp parallel reduction(+ : found)
    {
        int thread = omp_get_thread_num();
        const struct place *own = table[has_tables ? thread / 2 : 0];
        for (int probe = 0; probe < repeats * PROBES; probe++) {
            uint64_t key = mixed_up((uint64_t)thread << 32 | probe) % PLACES;
            found += own[key].key == key ? own[key].value[0] : 0;
        }
    }
    found -= (uint64_t)repeats * PROBES * omp_get_max_threads();
}

static int join_is_right(void)
{
    return found == 0;
}

enum { WORDS = 1 << 20 };

static double by_main[WORDS], by_user[WORDS], by_other[WORDS];
static int shift, mixed_rounds;

/* The slice of a thread of the next node. */
static int shifted(int thread, int by)
{
    return (thread + by) % omp_get_num_threads();
}

static void mixed_touch(double *array, int by)
{
    int words = WORDS / omp_get_num_threads(), first = shifted(omp_get_thread_num(), by) * words;
    for (int i = first; i < first + words; i++)
        array[i] = 0;
}

static void mixed_prepare(int is_repaired)
{
    shift = is_repaired ? 0 : 2;
#pragma omp parallel if (is_repaired)
    mixed_touch(by_main, 0);
#pragma omp parallel
    {
        mixed_touch(by_user, 0);
        mixed_touch(by_other, shift);
    }
}

static void mixed_use(double *array)
{
    NUMAKIT_MARK_BEGIN();
#pragma omp parallel for schedule(static)
    for (int i = 0; i < WORDS; i++)
        array[i] += 1;
    NUMAKIT_MARK_END();
}

static void mixed_work(int repeats)
{
    for (mixed_rounds = 0; mixed_rounds < repeats; mixed_rounds++) {
        mixed_use(by_main);
        mixed_use(by_user);
        mixed_use(by_other);
    }
}

static int mixed_is_right(void)
{
    return by_main[WORDS - 1] == mixed_rounds && by_user[0] == mixed_rounds && by_other[0] == mixed_rounds;
}

enum { VALUES = 1 << 20, FIRST_USER = 2, USERS = 2 };

static double store[VALUES];

/* The part of a user, in all of its rounds; those of other threads have nothing. */
static void of_users(int rounds)
{
#pragma omp parallel
    {
        int user = omp_get_thread_num() - FIRST_USER, part = VALUES / USERS;
        for (int round = 0; round < rounds && user >= 0 && user < USERS; round++)
            for (int i = user * part; i < (user + 1) * part; i++)
                store[i] += 1;
    }
}

static int store_rounds;

static void store_prepare(int is_repaired)
{
    for (int i = 0; i < VALUES && !is_repaired; i++)
        store[i] = 1;
    if (is_repaired)
        of_users(1);
}

static void store_work(int repeats)
{
    store_rounds = repeats;
    of_users(repeats);
}

static int store_is_right(void)
{
    return store[0] == store_rounds + 1 && store[VALUES - 1] == store_rounds + 1;
}

static const struct kernel kernels[] = {
    {"cg", cg_prepare, cg_work, cg_is_right, 30, false, false},
    {"is", is_prepare, is_work, is_is_right, 16, false, false},
    {"join", join_prepare, join_work, join_is_right, 24, false, false},
    {"mixed", mixed_prepare, mixed_work, mixed_is_right, 30, true, false},
    {"store", store_prepare, store_work, store_is_right, 40, false, false},
};

int main(int count, char **words)
{
    return run_kernel(kernels, sizeof kernels / sizeof *kernels, count, words);
}
