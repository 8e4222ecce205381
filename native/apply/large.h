/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Large blocks, each in a span of its own. Those that are freed are kept with their policy, up to a limit, for blocks of the same object
 * and size. */
#ifndef LARGE_H
#define LARGE_H

#include "space.h"

/* NULL if it cannot have its policy. `*is_zero` tells whether it has zeros. */
void *large_new(struct object *object, size_t size, size_t alignment, uint16_t node, bool *is_zero);
void large_free(struct span *span);

/* Counts on which nodes the first of an object's blocks in use are. */
void large_sample(struct object *object);

/* As pool_forget. */
void large_forget(void);

void large_lock(void (*function)(struct lock *));

#endif
