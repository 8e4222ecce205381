/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The free spans of a pool by their number of units. The caller has the lock of the pool. */
#ifndef ALLOC_BINS_H
#define ALLOC_BINS_H

#include "pool.h"

/* The units of a free span before its first one at the alignment, a power of two. */
static inline uint32_t lead_of(uint32_t first, uint32_t alignment)
{
    return (uint32_t)-((uintptr_t)unit_start(first) >> UNIT_SHIFT) & (alignment - 1);
}

/* Free units whose records are NOTHING, or WAS_LARGE, become a span. */
void bins_add(struct pool *pool, uint32_t first, uint32_t count);

/* The span that begins here is one no longer; its records are NOTHING. */
void bins_remove(struct pool *pool, uint32_t first);

/* A span in which `count` units fit at the alignment, of those that were looked at the smallest; 0 if there is none. */
uint32_t bins_find(const struct pool *pool, uint32_t count, uint32_t alignment);

#endif
