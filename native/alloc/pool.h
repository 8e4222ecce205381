/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Spans of units in one area of a region: best fit, neighbours that are free become one. Free spans keep their pages up to a
 * limit, the kernel may take those above it when memory is short, and those above a second one are dropped. */
#ifndef ALLOC_POOL_H
#define ALLOC_POOL_H

#include "lock.h"
#include "space.h"

enum { POOL_BINS = 128 };

struct pool {
    struct lock lock;
    unsigned node;
    struct pool *other;                       /* of the region: it gives pages back when this one needs new ones */
    uint32_t first, frontier, mapped, end;    /* units: from the frontier on, none was taken */
    uint32_t begin, recorded;                 /* units with records: behind the last gap, or all */
    uint32_t huge_from;                       /* units from here on ask for huge pages */
    uint32_t bins[POOL_BINS];
    uint64_t filled[POOL_BINS / 64];
    uint32_t lately;                          /* the most units in use, which decays within seconds */
    uint32_t seen_time;                       /* when it decayed last */
    uint32_t refused;                         /* units since then whose pages the kernel did not take */
    struct pool_counts *counts;
} __attribute__((aligned(64)));

/* Units from `first` to `end`, whose memory is preferably on the node; `other` is the other pool of the region. */
void pool_prepare(struct pool *pool, struct pool *other, uint32_t first, uint32_t end, uint32_t huge_from, unsigned node,
                  struct pool_counts *counts);

/* A span of `count` units that begins at an address that is a multiple of `alignment` units; 0 if there is no memory. One
 * that was never used is longer by `room`, which takes no memory until it is touched. */
struct span {
    uint32_t first, count;
};
struct span pool_take(struct pool *pool, uint32_t count, uint32_t room, uint32_t alignment);

/* Makes a span longer where it lies. */
bool pool_extend(struct pool *pool, uint32_t first, uint32_t count, uint32_t longer);

/* Gives units back, with pages or without. Their records are NOTHING, or WAS_LARGE. */
void pool_give(struct pool *pool, uint32_t first, uint32_t count, bool has_pages);

/* Sets policy and advice of units, as they all have it. */
void pool_advise(const struct pool *pool, uint32_t first, uint32_t count);

/* Drops all pages of free spans; true if there were some. */
bool pool_drop(struct pool *pool);

/* Gives the addresses at the end back that are free; true if there were some. */
bool pool_shrink(struct pool *pool);

#endif
