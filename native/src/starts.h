/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a new thread is told by its creator. The records are kept apart from malloc, which would
 * make an arena for a thread that only gives one back. */
#ifndef STARTS_H
#define STARTS_H

#include "thread.h"

struct start {
    void *(*function)(void *);
    void *argument;
    bool returns_int;       /* `function` gives an int */
    struct place place;
    size_t stack_bytes;     /* `place.bottom` is so far under the top, unless it is known */
    bool has_policy;        /* `policy` is to be restored */
    struct policy policy;
};

/* A record for this thread, or NULL if there is no memory. Without locks. */
struct start *start_new(void *(*function)(void *), void *argument);

/* It may be used again. */
void start_free(struct start *start);

/* In a forked child: the threads that were just starting are not here. */
void starts_forget(void);

#endif
