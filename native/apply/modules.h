/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The modules of the cure that the process has loaded, found by their build IDs, and the libraries of others through which allocations of
 * the program come. */
#ifndef MODULES_H
#define MODULES_H

#include "cure.h"

/* Libraries that call malloc for the program: numakit's own, and those with C++'s `new`. */
enum { MAX_BETWEEN = 8 };

struct code_range {
    _Atomic uintptr_t from, bytes;
};

extern struct code_range between[MAX_BETWEEN] __attribute__((visibility("hidden")));

static inline bool is_between(uintptr_t code)
{
    for (int i = 0; i < MAX_BETWEEN; i++)
        if (code - between[i].from < between[i].bytes)
            return true;
    return false;
}

/* Looks for modules, if any were loaded or unloaded since the last time. Variables of new ones get their policy. */
void modules_look(void);

/* To be called with the frame of the caller before libraries are loaded or unloaded. From then on all allocations are looked at, until
 * this thread is back. */
void modules_will_change(const void *frame);

/* Of the thread: the frame in which it loads or unloads libraries, or 0. */
extern __thread uintptr_t changing_frame __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Looks for modules while the thread loads libraries, and once when it is back. */
static inline void modules_follow(const void *frame)
{
    void modules_follow_slowly(const void *frame);
    if (RARELY(changing_frame))
        modules_follow_slowly(frame);
}

void modules_lock(void (*function)(struct lock *));

#endif
