/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions in which a library acts before or behind the program's call: they change which system calls are allowed, make one
 * whose number the program gives, move a mapping, or end the process. */
#ifndef CALLS_H
#define CALLS_H

#include "next.h"
#include <stdbool.h>

#define CALLS(DO) DO(prctl) DO(syscall) DO(mremap) DO(_exit)
CALLS(NEXT_DECLARE)

typedef void *remap(void *old, size_t old_bytes, size_t bytes, int flags, ...);

/* The library's own: */

/* A filter may end the process from now on for a call that only this library makes. */
void library_is_filtered(void);
/* Whether this system call is left out, as if it had succeeded. */
bool library_leaves_out(long number, long a, long b, long c);
/* mremap by `next`; the frame is that of the function that the program called. */
void *library_remap(remap *next, void *old, size_t old_bytes, size_t bytes, int flags, void *where, const void *frame);
/* The process ends, or a child by vfork, before its parent goes on. */
void library_end(void);

#endif
