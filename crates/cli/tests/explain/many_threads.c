/* Prints the numbers of its threads in the order in which it creates them, the first thread first. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 64 };

static int numbers[THREADS];
static pthread_barrier_t all;

static void *begin(void *number)
{
    numbers[(long)number] = gettid();
    pthread_barrier_wait(&all);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&all, NULL, THREADS);
    for (long thread = 1; thread < THREADS; thread++)
        pthread_create(&threads[thread], NULL, begin, (void *)thread);
    begin(NULL);
    for (long thread = 1; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    for (int thread = 0; thread < THREADS; thread++)
        printf("%d\n", numbers[thread]);
    return 0;
}
