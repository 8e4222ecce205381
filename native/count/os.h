/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* System calls. None allocates, and none changes errno. */
#ifndef COUNT_OS_H
#define COUNT_OS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* What these map has all its pages, so that no page fault of the program is ours.
 * Maps a file of at least this many bytes, shared; NULL if it cannot. */
void *os_map_file(const char *path, size_t bytes);
/* Zeros of its own; NULL without memory. */
void *os_map_private(size_t bytes);
/* A page that is zero again in the child of a fork; an ordinary one before Linux 4.14. NULL without memory. */
void *os_map_wiped(size_t bytes);
uint64_t os_pid(void);
/* The page faults of this process so far. */
uint64_t os_faults(void);
/* Nanoseconds of CPU that this thread has used. */
uint64_t os_thread_cpu(void);
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
