/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes and threads that this library does not create start as without the library: with the process's
 * whole mask and policy, not with the one CPU of the thread that starts them. This also works for programs
 * that do not load the library. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "os.h"

/* The state of the calling thread that is not inherited. */
struct saved_state {
    bool has_mask, has_policy;
    int error;                /* errno after the program's call */
    struct cpus mask;
    struct policy policy;
};

/* Around a call that starts something: in between, the calling thread has the state to inherit. errno is
 * kept. */
void children_before(struct saved_state *saved);
void children_after(const struct saved_state *saved);

/* Around a call of exec, which may be made in a child that shares its parent's memory. If exec returns, it
 * has failed. */
void exec_before(struct saved_state *saved);

/* In a child with one thread: sets the state to inherit, for good. */
void children_begin(void);

#endif
