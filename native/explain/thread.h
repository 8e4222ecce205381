/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is known of each thread that is sampled, until its end. */
#ifndef EXPLAIN_THREAD_H
#define EXPLAIN_THREAD_H

#include "base/records.h"
#include "os.h"

struct thread {
    struct record record;
    /* While the thread has a timer. */
    _Atomic(pid_t) thread;
    int timer;
    bool has_timer;
    /* Its stack, as far as it is known: all between a stack pointer in it and the end is there. */
    uint64_t stack_low, stack_high;
    /* At its last sample. */
    struct usage usage;
};

extern struct records threads;

#endif
