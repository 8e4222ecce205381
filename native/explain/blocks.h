/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The addresses of logged blocks: a filter that costs each free a load, and a set behind it. Lock-free, since a signal's
 * handler may allocate. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FILTER_SIZE = 1 << 14, FILTER_SHIFT = 12 };

/* For pages of addresses, how many blocks of the set begin there. */
extern _Atomic uint32_t blocks_filter[FILTER_SIZE] __attribute__((visibility("hidden")));

/* False if there is no memory for the set. */
bool blocks_begin(void);

static inline _Atomic uint32_t *blocks_place(const void *block)
{
    return &blocks_filter[((uintptr_t)block >> FILTER_SHIFT) % FILTER_SIZE];
}

/* Whether the block may be in the set. */
static inline bool blocks_may_have(const void *block)
{
    return __builtin_expect(atomic_load_explicit(blocks_place(block), memory_order_relaxed) != 0, 0);
}

/* False if there is no room. */
bool blocks_add(const void *block);
/* True if the block was in the set. */
bool blocks_remove(const void *block);

#endif
