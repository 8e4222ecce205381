/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a thread starts, processes and threads that this library does not see, begins as it would
 * without the library: with the process's whole mask, not with the one CPU of the thread that started
 * it, and with the process's policy. It works with programs that never load the library. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "os.h"

/* What the calling thread has and does not pass on. */
struct kept {
    bool has_mask, has_policy;
    int error;                /* errno, when the call of the program had ended */
    struct cpus mask;
    struct policy policy;
};

/* Around a call that starts something: in between, the calling thread has what is passed on. errno
 * stays. */
void children_before(struct kept *kept);
void children_after(const struct kept *kept);

/* Around a call of exec, which may be made in a child that shares its parent's memory. Returning is
 * failing. */
void exec_before(struct kept *kept);

/* The calling thread is the only one of a child, and keeps what is passed on. */
void children_begin(void);

#endif
