/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions that this library has in place of others, beside the malloc family. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "base/next.h"

#define FUNCTIONS(DO)                                                                                                  \
    DO(mmap64) DO(munmap)                                                                                              \
    DO(pthread_create) DO(thrd_create) DO(sigaction) DO(signal) DO(bsd_signal) DO(ssignal) DO(sysv_signal)             \
    DO(__sysv_signal) DO(sigset) DO(sigignore) DO(siginterrupt) DO(sigtimedwait) DO(sigwaitinfo) DO(sigwait)           \
    DO(signalfd) DO(sigpending)
FUNCTIONS(NEXT_DECLARE)

#endif
