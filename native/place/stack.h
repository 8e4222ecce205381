/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Moves the pages of threads to their nodes: stack, thread control block and static thread-local storage,
 * which glibc has at the top of the stack's mapping and which the parent touches first. */
#ifndef STACK_H
#define STACK_H

#include <stddef.h>
#include <stdint.h>

enum {
    /* How much of an ended thread's stack glibc does not discard. */
    STACK_LEFT = 24 << 10,
    /* How much a thread may have touched before it was bound. */
    STACK_USED = 1 << 20,
};

/* Called before the other functions. */
void stack_begin(void);

/* The end of the calling thread's stack mapping; not for the main thread. */
uintptr_t stack_top(void);

/* Moves the pages of the calling thread that are not on the node, from `below` bytes below its stack
 * pointer, but not below `bottom`, to the top. */
void stack_move(int node, uintptr_t bottom, size_t below);

/* Prefers the node for untouched pages of the calling thread's stack, whatever the thread's policy. The
 * bottom may be unknown only for the main thread. */
void stack_prefer(int node, uintptr_t bottom);

#endif
