/* cured NAME broken|repaired [REPEATS]
 *
 *   heap     an array of malloc, which threads of POSIX use in parts while the first thread waits
 *   rows     rows of malloc, of which each thread of OpenMP uses some
 *   vector   a std::vector, which threads of OpenMP use in parts (cured.cc)
 *
 * With CURED_TWICE in the environment the array of `heap` is twice as large.
 *
 * Broken, the first thread touches all of it first; repaired, its users do. What the threads of a
 * node use is at least four times its simulated cache. */
#define _GNU_SOURCE
#include "npb.h"
#include <omp.h>
#include <pthread.h>

enum { THREADS = 8, WORDS = 1 << 20, ROWS = 256, IN_ROW = WORDS / ROWS };

static double *array, *row[ROWS];
static int rounds, words, part_words;

static void add(double *words, int count)
{
    for (int i = 0; i < count; i++)
        words[i] += 1;
}

static void fill(double *words, int count, double value)
{
    for (int i = 0; i < count; i++)
        words[i] = value;
}

/* Threads of POSIX: they fill if they are to, wait until the region begins, and use their parts. */

static pthread_barrier_t filled, begun, done;
static bool users_fill;

static void *use_part(void *number)
{
    double *part = array + (intptr_t)number * part_words;
    if (users_fill)
        fill(part, part_words, 1);
    pthread_barrier_wait(&filled);
    pthread_barrier_wait(&begun);
    for (int round = 0; round < rounds; round++)
        add(part, part_words);
    pthread_barrier_wait(&done);
    return NULL;
}

static void heap_prepare(int is_repaired)
{
    users_fill = is_repaired;
    words = getenv("CURED_TWICE") ? 2 * WORDS : WORDS;
    part_words = words / THREADS;
    array = malloc(words * sizeof *array);
    if (!array)
        fail("no memory");
    if (!is_repaired)
        fill(array, words, 1);
    pthread_barrier_init(&filled, NULL, THREADS + 1);
    pthread_barrier_init(&begun, NULL, THREADS + 1);
    pthread_barrier_init(&done, NULL, THREADS + 1);
    for (intptr_t number = 0; number < THREADS; number++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, use_part, (void *)number))
            fail("cannot create a thread");
    }
    pthread_barrier_wait(&filled);
}

static void heap_work(int repeats)
{
    rounds = repeats;
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&done);
}

static int heap_is_right(void)
{
    return array[0] == rounds + 1 && array[words - 1] == rounds + 1;
}

static void rows_prepare(int is_repaired)
{
    for (int i = 0; i < ROWS; i++)
        if (!(row[i] = malloc(IN_ROW * sizeof **row)))
            fail("no memory");
#pragma omp parallel for schedule(static) if (is_repaired)
    for (int i = 0; i < ROWS; i++)
        fill(row[i], IN_ROW, 1);
}

static void rows_work(int repeats)
{
    for (rounds = 0; rounds < repeats; rounds++) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < ROWS; i++)
            add(row[i], IN_ROW);
    }
}

static int rows_is_right(void)
{
    return row[0][0] == rounds + 1 && row[ROWS - 1][IN_ROW - 1] == rounds + 1;
}

void vector_prepare(int is_repaired);
void vector_work(int repeats);
int vector_is_right(void);

static const struct kernel kernels[] = {
    {"heap", heap_prepare, heap_work, heap_is_right, 40, false, true},
    {"rows", rows_prepare, rows_work, rows_is_right, 40, false, false},
    {"vector", vector_prepare, vector_work, vector_is_right, 40, false, false},
};

int main(int count, char **words)
{
    return run_kernel(kernels, sizeof kernels / sizeof *kernels, count, words);
}
