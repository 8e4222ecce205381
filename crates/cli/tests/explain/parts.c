/* parts MODE: four threads read an array at random: `main`, which the main thread touched first, each its part; `own`,
 * each the part that it touched first itself; `all`, all of what the main thread touched first. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, PART = 64 << 20, ROUNDS = 4000000 };

static char *array;
static const char *mode;
static pthread_barrier_t ready;
static volatile unsigned long sink;

static unsigned long gather(const char *from, size_t bytes, unsigned long number)
{
    unsigned long sum = 0;
    for (long i = 0; i < ROUNDS; i++) {
        number = number * 6364136223846793005ul + 1442695040888963407ul;
        sum += from[(number >> 30) & (bytes - 1)];
        number += sum & 1;
    }
    return sum;
}

static void *body(void *argument)
{
    size_t place = (size_t)argument;
    char *part = array + place * PART;
    if (!strcmp(mode, "own"))
        memset(part, 1, PART);
    pthread_barrier_wait(&ready);
    sink += strcmp(mode, "all") ? gather(part, PART, place) : gather(array, THREADS * (size_t)PART, place);
    return NULL;
}

int main(int count, char **words)
{
    pthread_t threads[THREADS];
    mode = count > 1 ? words[1] : "main";
    array = aligned_alloc(4096, THREADS * (size_t)PART);
    if (strcmp(mode, "own"))
        memset(array, 1, THREADS * (size_t)PART);
    pthread_barrier_init(&ready, NULL, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
