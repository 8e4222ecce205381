/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bins.h"

enum {
    EXACT_BINS = 16,    /* spans of less units than this have a bin for each count */
    LOOK_AT = 32,       /* spans that are compared in a bin */
};

static unsigned bin_of(uint32_t count)
{
    if (count < EXACT_BINS)
        return count;
    unsigned order = 31 - (unsigned)__builtin_clz(count);
    return EXACT_BINS + (order - 4) * 4 + ((count >> (order - 2)) & 3);
}

void bins_add(struct pool *pool, uint32_t first, uint32_t count)
{
    struct unit *unit = &space.units[first], *last = &space.units[first + count - 1];
    unsigned bin = bin_of(count);
    if (count > 1) {
        set_kind(last, FREE_END);
        last->count = count;
    }
    set_kind(unit, FREE);
    unit->count = count;
    unit->previous = 0;
    unit->next = pool->bins[bin];
    if (unit->next)
        space.units[unit->next].previous = first;
    pool->bins[bin] = first;
    pool->filled[bin / 64] |= UINT64_C(1) << bin % 64;
}

void bins_remove(struct pool *pool, uint32_t first)
{
    struct unit *unit = &space.units[first];
    unsigned bin = bin_of(unit->count);
    set_kind(&space.units[first + unit->count - 1], NOTHING);
    set_kind(unit, NOTHING);
    if (unit->next)
        space.units[unit->next].previous = unit->previous;
    if (unit->previous)
        space.units[unit->previous].next = unit->next;
    else if (!(pool->bins[bin] = unit->next))
        pool->filled[bin / 64] &= ~(UINT64_C(1) << bin % 64);
}

/* The smallest of the first spans in a bin that fit. */
static uint32_t best_in(const struct pool *pool, unsigned bin, uint32_t count, uint32_t alignment)
{
    uint32_t best = 0, at = pool->bins[bin];
    for (int looked = 0; at && looked < LOOK_AT; looked++, at = space.units[at].next) {
        const struct unit *unit = &space.units[at];
        if (unit->count < count + lead_of(at, alignment))
            continue;
        if (!best || unit->count < space.units[best].count)
            best = at;
    }
    return best;
}

uint32_t bins_find(const struct pool *pool, uint32_t count, uint32_t alignment)
{
    unsigned bin = bin_of(count);
    for (unsigned word = bin / 64; word < POOL_BINS / 64; word++) {
        uint64_t filled = pool->filled[word];
        if (word == bin / 64)
            filled &= UINT64_MAX << bin % 64;
        for (; filled; filled &= filled - 1) {
            unsigned at = word * 64 + (unsigned)__builtin_ctzll(filled);
            uint32_t found = best_in(pool, at, count, alignment);
            if (found)
                return found;
        }
    }
    return 0;
}
