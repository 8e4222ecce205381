/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions behind this library's of the same name: another preloaded library's or the C library's. */
#ifndef NEXT_H
#define NEXT_H

#define NEXT_FUNCTIONS(DO)                                                                                             \
    DO(pthread_create) DO(thrd_create) DO(sigaction) DO(signal) DO(bsd_signal) DO(ssignal) DO(sysv_signal)             \
    DO(__sysv_signal) DO(sigset) DO(sigignore) DO(siginterrupt) DO(sigtimedwait) DO(sigwaitinfo) DO(sigwait)           \
    DO(signalfd) DO(sigpending) DO(_Fork) DO(_exit) DO(syscall) DO(prctl)

#define NEXT_NUMBER(name) NEXT_##name,
enum next { NEXT_FUNCTIONS(NEXT_NUMBER) NEXT_COUNT };

/* Looks all up, since some are called in handlers, and in children that share their parent's memory. */
void next_begin(void);

/* NULL if there is none. */
void *next_function(enum next number);

#define NEXT(name) ((__typeof__(&name))next_function(NEXT_##name))

#endif
