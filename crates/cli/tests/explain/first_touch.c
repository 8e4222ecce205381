/* first_touch WHO: threads that use an array, each a part of its own; `main` initialises all of it before they start, with
 * `parallel` each thread its own part. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, WORDS = 1 << 25, PART = WORDS / THREADS, ROUNDS = 40 };

static uint64_t *array;
static volatile uint64_t sink;
static int is_parallel;

__attribute__((noinline)) static void initialise(uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words[i] = i ^ 5;
}

__attribute__((noinline)) static void fill_part(uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words[i] = i ^ 7;
}

__attribute__((noinline)) static uint64_t use_part(const uint64_t *words)
{
    uint64_t sum = 0;
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < PART; i += 8)
            sum += words[(round * 2654435761 + i) % PART];
    return sum;
}

static void *work(void *argument)
{
    uint64_t *part = array + (size_t)(uintptr_t)argument * PART;
    if (is_parallel)
        fill_part(part, PART);
    sink = use_part(part);
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[THREADS];
    is_parallel = count > 1 && strcmp(words[1], "parallel") == 0;
    array = malloc(WORDS * sizeof *array);
    if (!array)
        return 2;
    if (!is_parallel)
        initialise(array, WORDS);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
