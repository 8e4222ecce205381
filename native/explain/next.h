/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions behind this library's of the same name: another preloaded library's or the C library's. */
#ifndef NEXT_H
#define NEXT_H

#include <stdatomic.h>

#define NEXT_FUNCTIONS(DO)                                                                                             \
    DO(malloc) DO(calloc) DO(free) DO(realloc) DO(memalign) DO(aligned_alloc) DO(posix_memalign) DO(valloc)            \
    DO(pvalloc) DO(mmap64) DO(munmap) DO(mremap)                                                                       \
    DO(pthread_create) DO(thrd_create) DO(sigaction) DO(signal) DO(bsd_signal) DO(ssignal) DO(sysv_signal)             \
    DO(__sysv_signal) DO(sigset) DO(sigignore) DO(siginterrupt) DO(sigtimedwait) DO(sigwaitinfo) DO(sigwait)           \
    DO(signalfd) DO(sigpending) DO(_Fork) DO(_exit) DO(syscall) DO(prctl)

#define NEXT_NUMBER(name) NEXT_##name,
enum next { NEXT_FUNCTIONS(NEXT_NUMBER) NEXT_COUNT };

/* Looks all up, since some are called in handlers, and in children that share their parent's memory. */
void next_begin(void);

/* NULL if there is none. */
void *next_function(enum next number);

extern void *_Atomic next_functions[NEXT_COUNT] __attribute__((visibility("hidden")));

/* The same without looking it up: NULL if nobody has. */
static inline void *next_found(enum next number)
{
    return atomic_load_explicit(&next_functions[number], memory_order_relaxed);
}

#define NEXT(name) ((__typeof__(&name))next_function(NEXT_##name))

#endif
