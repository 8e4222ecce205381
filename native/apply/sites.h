/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which object a block is of, by its size and the code that allocates it. */
#ifndef SITES_H
#define SITES_H

#include "cure.h"

enum { SMALL = 1024, SMALL_STEP_BITS = 4 };

/* Sizes that are looked at: of those below SMALL a bit for 16 bytes, and all from a size on. At first all. */
struct wanted {
    _Atomic uint64_t small;
    _Atomic size_t large;
};

extern struct wanted wanted __attribute__((visibility("hidden")));

static inline bool is_wanted(size_t size)
{
    if (size < SMALL)
        return RARELY(atomic_load_explicit(&wanted.small, memory_order_relaxed) >> (size >> SMALL_STEP_BITS) & 1);
    return RARELY(size >= atomic_load_explicit(&wanted.large, memory_order_relaxed));
}

/* Computes the addresses of all chains from the modules that are loaded. Called by one thread at a time. */
void sites_find(void);
/* Has all sizes looked at, or those of objects only. */
void sites_want_all(bool all);
/* From now on no size is looked at. */
void sites_stop(void);

/* The object of a block that a function of this library with this frame is to allocate; NULL if it is of none. */
struct object *site_of(size_t size, const void *frame);

#endif
