/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Arguments of a new thread from its creator. They do not use malloc, which would create an arena for a
 * thread that only frees one. */
#ifndef STARTS_H
#define STARTS_H

#include "thread.h"

struct start {
    void *(*function)(void *);
    void *argument;
    bool returns_int;       /* `function` returns an int */
    struct place place;
    size_t stack_bytes;     /* distance of `place.bottom` from the top, if it is unknown */
    bool has_policy;        /* `policy` is to be restored */
    struct policy policy;
};

/* A record for this thread, or NULL if there is no memory. Lock-free. */
struct start *start_new(void *(*function)(void *), void *argument);

/* Frees a record for reuse. */
void start_free(struct start *start);

/* In a forked child, which does not have the threads that were starting. */
void starts_forget(void);

#endif
