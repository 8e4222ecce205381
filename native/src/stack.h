/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Brings the pages of threads to their nodes: stack, thread control block and static thread-local
 * storage, which glibc has at the top of the stack's mapping and which the parent touches first. */
#ifndef STACK_H
#define STACK_H

#include <stddef.h>
#include <stdint.h>

enum {
    /* What glibc leaves of the stack of a thread that ended, for the next one. */
    STACK_LEFT = 24 << 10,
    /* What a thread may have touched before it was bound. */
    STACK_USED = 1 << 20,
};

/* Before the first of the others. */
void stack_begin(void);

/* The end of the calling thread's stack mapping, if it is not the main thread. */
uintptr_t stack_top(void);

/* Moves those pages of the calling thread that are not on the node, from `below` bytes under its
 * stack pointer, but not under `bottom`, to the top. */
void stack_bring(int node, uintptr_t bottom, size_t below);

/* From now on, untouched pages of the calling thread's stack come from the node, whatever the
 * policy of the thread is. Only for the main thread the bottom may be unknown. */
void stack_prefer(int node, uintptr_t bottom);

#endif
