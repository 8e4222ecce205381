/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* System calls that several libraries make; each has its own beside them. None allocates, locks, changes errno or uses
 * thread-local storage: a handler may call them whatever it interrupted. */
#ifndef OS_H
#define OS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

pid_t os_process(void);
pid_t os_thread(void);

/* In nanoseconds. */
uint64_t os_time(clockid_t clock);

/* New memory, filled with zeros, not from malloc; NULL if there is none. The flags are those of mmap(2) beside the usual
 * ones. */
void *os_allocate(size_t bytes, int flags);
/* A file mapped to be shared, if it has at least `least` bytes, else NULL. */
void *os_map_shared(const char *path, size_t least, size_t *bytes, int flags);
void os_unmap(void *memory, size_t bytes);

/* Of the calling thread; `old` may be NULL. */
void os_mask_signals(int how, const sigset_t *set, sigset_t *old);

/* The number of seccomp filters of this process; an upper limit where the kernel does not tell it. */
uint64_t os_seccomp_filters(void);

/* The beginning of a small file, terminated by a zero; how many bytes it has, 0 if it cannot be read. */
size_t os_read(const char *path, char *text, size_t room);

/* Asks for pages of a node where there are any, before they are touched. The first touch decides where this fails. */
void os_prefer_node(void *memory, size_t bytes, int node);

static inline void os_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
