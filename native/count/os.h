/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The system calls that only this library makes, and its clock. */
#ifndef COUNT_OS_H
#define COUNT_OS_H

#include "base/os.h"

/* A page that is zero again in the child of a fork; an ordinary one before Linux 4.14. NULL without memory. */
void *os_allocate_wiped(size_t bytes);
/* The page faults of this process so far. */
uint64_t os_faults(void);
/* Calls `line` for each line of /proc/self/maps. One thread at a time. */
void os_each_mapping(void (*line)(char *text));

/* A clock that costs some nanoseconds on most processors. */
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
