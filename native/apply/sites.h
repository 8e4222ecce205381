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

/* Objects by the address of their direct caller; `first` is an index + 1. */
enum { PLACES_BITS = 10, PLACES = 1 << PLACES_BITS };
extern struct place {
    _Atomic uintptr_t code;
    _Atomic uint32_t first;
} site_places[PLACES] __attribute__((visibility("hidden")));

static inline uint64_t site_mixed(uintptr_t code)
{
    return code * UINT64_C(0x9e3779b97f4a7c15);
}

/* The first object with this direct caller, or NULL. */
static inline struct object *site_first(uintptr_t code)
{
    for (size_t at = site_mixed(code) >> (64 - PLACES_BITS);; at = (at + 1) % PLACES) {
        uintptr_t there = atomic_load_explicit(&site_places[at].code, memory_order_acquire);
        if (there == 0)
            return NULL;
        if (there != code)
            continue;
        uint32_t first = atomic_load_explicit(&site_places[at].first, memory_order_relaxed);
        return first ? &cure.object[first - 1] : NULL;
    }
}

/* Whether the direct caller alone tells the object. */
static inline bool site_is_plain(const struct object *object, size_t size)
{
    return object && object->chain_count == 1 && !object->next && object_takes(object, size);
}

/* The object of a block that a function of this library with this frame is to allocate; NULL if it is of none. */
struct object *site_of(size_t size, const void *frame);

#endif
