/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How far a thread may read its stack. */
#ifndef STACK_H
#define STACK_H

#include <stddef.h>
#include <stdint.h>

/* Called by the first thread. */
void stack_begin(void);

/* The end of what can be read from an address on the stack on, at most this number of words. On a stack that is not the thread's own, as of
 * a coroutine, that is the end of the page. */
const uintptr_t *stack_end(const uintptr_t *from, size_t most);

#endif
