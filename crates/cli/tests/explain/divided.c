/* Arrays of which each thread uses a part of its own: a variable, a block, two blocks through one function, and a block for each
   thread. The first thread fills all of them. Each thread works for as many seconds of CPU time as the command says. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, COUNT = 1 << 22, OWN = COUNT / 4 };

static double table[COUNT], *block, *first, *second, *own[THREADS], sums[THREADS * 64];
static double seconds;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static __attribute__((noinline)) void *checked_malloc(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        abort();
    return memory;
}

static __attribute__((noinline)) void make_first(void)
{
    first = checked_malloc(sizeof(table));
    memset(first, 1, sizeof(table));
}

static __attribute__((noinline)) void make_second(void)
{
    second = checked_malloc(sizeof(table));
    memset(second, 1, sizeof(table));
}

static void *use_part(void *number)
{
    long thread = (long)number;
    double sum = 0, end = now() + seconds;
    while (now() < end) {
        for (long at = thread * (COUNT / THREADS); at < (thread + 1) * (COUNT / THREADS); at += 8) {
            sum += table[at] + block[at] + first[at] + second[at];
            sum += own[thread][at % OWN];
        }
    }
    sums[thread * 64] = sum;
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[THREADS];
    seconds = count > 1 ? atof(words[1]) : 1;
    block = malloc(sizeof(table));
    memset(block, 1, sizeof(table));
    memset(table, 1, sizeof(table));
    make_first();
    make_second();
    for (long thread = 0; thread < THREADS; thread++) {
        own[thread] = malloc(OWN * sizeof(double));
        memset(own[thread], 1, OWN * sizeof(double));
    }
    for (long thread = 1; thread < THREADS; thread++)
        pthread_create(&threads[thread], NULL, use_part, (void *)thread);
    use_part(NULL);
    for (long thread = 1; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    double sum = 0;
    for (long thread = 0; thread < THREADS; thread++)
        sum += sums[thread * 64];
    printf("%g\n", sum);
    return 0;
}
