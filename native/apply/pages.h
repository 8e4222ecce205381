/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* On which nodes pages of objects are. */
#ifndef PAGES_H
#define PAGES_H

#include "cure.h"

enum { SAMPLED_FREES = 16 };

/* Asks for a page of each fraction of this memory, and adds them to the counts of the object. */
void pages_count(struct object *object, uintptr_t from, size_t bytes);

/* Keeps pages of memory in mind, for one question about all: `pages_ask`. A thread at a time. */
void pages_add(uintptr_t from, size_t bytes);
void pages_ask(struct object *object);

/* Before memory of a block is reused or unmapped: the first times for an object. */
static inline void pages_sample_freed(struct object *object, uintptr_t from, size_t bytes)
{
    if (RARELY(atomic_load_explicit(&object->sampled_frees, memory_order_relaxed) < SAMPLED_FREES) &&
        atomic_fetch_add(&object->sampled_frees, 1) < SAMPLED_FREES)
        pages_count(object, from, bytes);
}

#endif
