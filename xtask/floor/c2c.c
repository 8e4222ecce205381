/* A cache line goes from one CPU to another and back: two threads that wait for each other's number.
 * Usage: c2c CPU CPU MS. Prints the median of ns for a round trip. */
#define _GNU_SOURCE
#include "timed.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { TRIPS = 512, MOST = 100000 };

static _Alignas(128) atomic_uint_fast64_t line;
static const uint64_t end = UINT64_MAX;

static void *answer(void *cpu)
{
    bind_to(cpu);
    for (uint64_t odd = 1;; odd += 2) {
        uint64_t seen;
        while ((seen = atomic_load_explicit(&line, memory_order_acquire)) != odd)
            if (seen == end)
                return NULL;
        atomic_store_explicit(&line, odd + 1, memory_order_release);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    pthread_t thread;
    if (pthread_create(&thread, NULL, answer, argv[2]))
        return 1;
    bind_to(argv[1]);
    static double times[MOST];
    size_t samples = 0;
    uint64_t even = 0;
    double until = now() + atof(argv[3]) * 1e6;
    while ((samples < 5 || now() < until) && samples < MOST) {
        double begin = now();
        for (int trip = 0; trip < TRIPS; trip++, even += 2) {
            atomic_store_explicit(&line, even + 1, memory_order_release);
            while (atomic_load_explicit(&line, memory_order_acquire) != even + 2)
                ;
        }
        times[samples++] = (now() - begin) / TRIPS;
    }
    atomic_store_explicit(&line, end, memory_order_release);
    pthread_join(thread, NULL);
    printf("ns %.3f\n", median(times, samples));
    return 0;
}
