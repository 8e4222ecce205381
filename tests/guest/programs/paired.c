/* paired NAME broken|repaired [REPEATS]
 *
 *   openmp    eight threads of OpenMP
 *   threads   the first thread and seven threads of POSIX
 *
 * Two threads each work on an array of their own: both read all of it, and each changes every second
 * word. Broken, a thread shares with the fourth one after it; repaired, neighbours share. What the
 * threads of a node use is at least four times its simulated cache. */
#define _GNU_SOURCE
#include "npb.h"
#include <omp.h>
#include <pthread.h>

enum { THREADS = 8, PAIRS = THREADS / 2, WORDS = 1 << 18 };

static long shared[PAIRS][WORDS];
static bool are_neighbours;
static int rounds;

/* The array of a thread, and which half of the words it changes. */
static long *array_of(int thread, int *half)
{
    *half = are_neighbours ? thread % 2 : thread / PAIRS;
    return shared[are_neighbours ? thread / 2 : thread % PAIRS];
}

static void fill_pair(int thread)
{
    int half;
    long *words = array_of(thread, &half);
    for (int i = 0; half == 0 && i < WORDS; i++)
        words[i] = 1;
}

/* The other thread changes the words beside them meanwhile. */
static void work_as(int thread)
{
    int half;
    long *words = array_of(thread, &half), seen = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = half; i < WORDS; i += 2) {
            seen += __atomic_load_n(&words[i ^ 1], __ATOMIC_RELAXED);
            __atomic_store_n(&words[i], words[i] + 1, __ATOMIC_RELAXED);
        }
    }
    if (seen < WORDS / 2)
        fail("the other thread has filled nothing");
}

static int is_right(void)
{
    for (int pair = 0; pair < PAIRS; pair++)
        for (int i = 0; i < WORDS; i++)
            if (shared[pair][i] != rounds + 1)
                return 0;
    return 1;
}

static void openmp_prepare(int is_repaired)
{
    are_neighbours = is_repaired;
    if (omp_get_max_threads() != THREADS)
        fail("%d threads are needed", THREADS);
#pragma omp parallel
    fill_pair(omp_get_thread_num());
}

static void openmp_work(int repeats)
{
    rounds = repeats;
#pragma omp parallel
    work_as(omp_get_thread_num());
}

static pthread_t thread[THREADS];
static pthread_barrier_t filled, begun;

static void *work_when_begun(void *number)
{
    fill_pair((int)(intptr_t)number);
    pthread_barrier_wait(&filled);
    pthread_barrier_wait(&begun);
    work_as((int)(intptr_t)number);
    return NULL;
}

static void threads_prepare(int is_repaired)
{
    are_neighbours = is_repaired;
    pthread_barrier_init(&filled, NULL, THREADS);
    pthread_barrier_init(&begun, NULL, THREADS);
    for (intptr_t number = 1; number < THREADS; number++)
        if (pthread_create(&thread[number], NULL, work_when_begun, (void *)number))
            fail("cannot create a thread");
    fill_pair(0);
    pthread_barrier_wait(&filled);
}

static void threads_work(int repeats)
{
    rounds = repeats;
    pthread_barrier_wait(&begun);
    work_as(0);
    for (int number = 1; number < THREADS; number++)
        pthread_join(thread[number], NULL);
}

static const struct kernel kernels[] = {
    {"openmp", openmp_prepare, openmp_work, is_right, 20, false, false},
    {"threads", threads_prepare, threads_work, is_right, 20, false, true},
};

int main(int count, char **words)
{
    return run_kernel(kernels, sizeof kernels / sizeof *kernels, count, words);
}
