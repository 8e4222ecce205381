/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "thread.h"
#include <signal.h>

/* Finds out what this processor and kernel permit; NUMA_SAMPLE_RESTARTS=on or off overrides the kernel's version. */
void sample_begin(char **environment);

/* Writes a sample of the state that the timer's signal interrupted. Async-signal-safe, without thread-local
 * storage. */
void sample_take(struct thread *record, uint64_t now, const siginfo_t *info, const ucontext_t *context);

/* Lets a call that was to end with EINTR start again, where that was the kernel's doing for the timer's signal. */
void sample_restart_call(ucontext_t *context);

#endif
