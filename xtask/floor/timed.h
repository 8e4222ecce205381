/* A thread on one CPU that measures times and states their median. */
#ifndef TIMED_H
#define TIMED_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Nanoseconds. */
static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static inline void bind_to(const char *cpu)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(cpu), &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus))
        perror("sched_setaffinity");
}

static inline int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Sorts them. */
static inline double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

#endif
