/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Small and middle blocks: those of one object, one node and one class of sizes share spans with one policy. A thread takes from and gives
 * to a part of the pool, so that threads do not wait for each other; spans whose blocks are all free are unmapped beyond a limit. */
#ifndef POOL_H
#define POOL_H

#include "space.h"

#define POOL_MOST ((size_t)256 << 10)
#define POOL_MOST_ALIGNMENT ((size_t)4096)

/* NULL if it cannot have its policy. Its content is undefined. */
void *pool_new(struct object *object, size_t size, size_t alignment, uint16_t node);
void pool_free(struct span *span, void *block);
size_t pool_usable(const struct span *span);

/* Counts on which nodes spans of the object are. */
void pool_sample(struct object *object);

/* In a forked child: what the parent has not told yet, it tells itself. */
void pool_forget(void);

void pool_lock(void (*function)(struct lock *));

#endif
