// Ticks at absolute times, as cheap as they can be had; those whose whole interval went by are missed.

#ifndef TICKS_H
#define TICKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct ticks {
    int64_t interval, all; // ns, and how many there should be
    int64_t start, cpu;    // when the first one began
    int64_t tick, taken;   // the present one, and how many there were
};

static inline int64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline struct ticks ticks_begin(const char *per_second, const char *seconds)
{
    struct ticks t = {.interval = 1000000000LL / atol(per_second), .all = atol(per_second) * atol(seconds)};
    t.start = now(CLOCK_MONOTONIC);
    t.cpu = now(CLOCK_THREAD_CPUTIME_ID);
    return t;
}

// Sleeps until the next tick and gives when it was due; false after the last one.
static inline bool ticks_wait(struct ticks *t, int64_t *due)
{
    if (t->tick > 0) {
        const int64_t behind = (now(CLOCK_MONOTONIC) - t->start - (t->tick + 1) * t->interval) / t->interval;
        if (behind > 0)
            t->tick += behind;
    }
    if (++t->tick > t->all)
        return false;
    *due = t->start + t->tick * t->interval;
    const struct timespec until = {.tv_sec = *due / 1000000000, .tv_nsec = *due % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    t->taken++;
    return true;
}

static inline void ticks_print(const struct ticks *t)
{
    printf("cpu_us %.3f\n", (now(CLOCK_THREAD_CPUTIME_ID) - t->cpu) / 1e3 / t->taken);
    printf("missed %.6f\n", 1.0 - (double)t->taken / t->all);
}

#endif
