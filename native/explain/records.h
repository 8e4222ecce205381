/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A record for each thread that is sampled, from before its start until its end. Records are never freed: a signal that
 * is late finds one that is not in use. They do not use malloc, which would create an arena for a thread that only
 * frees one. */
#ifndef RECORDS_H
#define RECORDS_H

#include "os.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct record {
    atomic_bool used;
    /* The thread's first function and its argument, for its start. */
    void *(*function)(void *);
    void *argument;
    bool returns_int;
    /* While the thread has a timer. */
    _Atomic(pid_t) thread;
    int timer;
    bool has_timer;
    /* Its stack, as far as it is known: all between a stack pointer in it and the end is there. */
    uint64_t stack_low, stack_high;
    /* At its last sample. */
    struct usage usage;
};

/* A free one, NULL if there is no memory. Lock-free. */
struct record *record_new(void);
void record_free(struct record *record);

/* The record at this address if there is one. Async-signal-safe. */
struct record *record_at(void *address);

/* Calls the function for all that are used. */
void records_each(void (*function)(struct record *));

/* In a forked child, which has only the calling thread. */
void records_forget(void);

#endif
