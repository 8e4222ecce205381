/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Blocks above LARGEST_SMALL: spans of units, whose blocks begin at different distances from the start, so that arrays of
 * equal size do not compete for the same sets of the caches. */
#ifndef ALLOC_LARGE_H
#define ALLOC_LARGE_H

#include "center.h"

/* A block of at least these bytes at a power of two, in the region of this node or, if its space is full, in another one;
 * NULL if there is no memory. */
void *large_take(unsigned region, size_t bytes, size_t alignment, bool *is_zero);

/* Whether this is the start of a large block. */
bool large_is(const void *block);

void large_give(void *block);
size_t large_usable(const void *block);

/* The block with another size, where it lies or elsewhere; NULL if there is no memory, and then the old one is as before. */
void *large_resize(unsigned region, void *block, size_t bytes);

#endif
