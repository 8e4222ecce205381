/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A clock that costs some nanoseconds on most processors, and is the same on all CPUs of a machine. */
#ifndef TICKS_H
#define TICKS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    return now;
#else
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
#endif
}

#endif
