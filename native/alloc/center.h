/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The small blocks of a region: chains that threads hand over, and the slabs behind them. */
#ifndef ALLOC_CENTER_H
#define ALLOC_CENTER_H

#include "block.h"
#include "pool.h"

enum { MOST_CHAINS = 32 };

/* The blocks of a class in a region. */
struct center {
    struct lock lock;
    uint32_t chains;
    uint32_t waiting;   /* blocks of the chains */
    bool is_busy;       /* a chain came or went since it was last looked at */
    uint32_t partial;   /* slabs with free blocks */
    uint32_t current;   /* the slab whose end has blocks that nobody had yet */
    struct chain chain[MOST_CHAINS];
} __attribute__((aligned(64)));

/* Blocks freed by threads of other nodes, of all classes. */
struct inbox {
    struct lock lock;
    _Atomic uint32_t count;
    struct block *head;
    uint64_t *received;
} __attribute__((aligned(64)));

struct region {
    struct pool small, large;
    struct inbox inbox;
    struct center centers[CLASSES];
};

/* One for each node, after `regions_prepare`. */
extern struct region *regions;

/* False if there is no memory. */
bool regions_prepare(unsigned count);

/* The pool that a unit is of. Where there is no memory in the other one, a large block may be in a small pool, and a slab in a
 * large one. */
static inline struct pool *pool_of(uint32_t unit)
{
    struct region *region = &regions[region_of((size_t)unit << UNIT_SHIFT)];
    return unit < region->large.first ? &region->small : &region->large;
}

/* Blocks for a thread: a chain, or a range of new ones. */
struct supply {
    struct chain chain;
    char *from, *to;
    bool is_zero;
};

/* False if there is no memory. */
bool center_supply(struct region *region, unsigned class, struct supply *supply);

/* Takes a chain of blocks of this class and region. */
void center_accept(struct region *region, unsigned class, struct chain chain);

/* Takes what is left of a range. */
void center_accept_range(struct region *region, unsigned class, char *from, char *to);

/* Takes blocks of this region that a thread of another node freed; `tail` is the last of the chain. */
void inbox_accept(struct region *region, struct chain chain, struct block *tail);

/* All blocks of the inbox. */
struct chain inbox_take(struct region *region);

/* Gives a chain back to its slabs, and the slabs that are then empty to the pool. */
void center_return(struct region *region, unsigned class, struct chain chain);

/* The same for all chains that wait; `if_idle`: unless one came or went since the last call. */
void center_drain(struct region *region, unsigned class, bool if_idle);

/* Around a fork: all locks. */
void regions_lock(void);
void regions_unlock(void);

#endif
