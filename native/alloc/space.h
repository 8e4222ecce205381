/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The address space of all blocks: one region for each node, side by side, so that the node of a block is a shift. It is divided
 * into units of 16 KiB; each has a record outside of the blocks. Nothing of it is reserved: addresses are mapped when units are
 * first used, and something else may lie there. */
#ifndef ALLOC_SPACE_H
#define ALLOC_SPACE_H

#include "classes.h"
#include "counts.h"
#include "os.h"

/* What begins at a unit, or ends there. */
enum unit_kind {
    NOTHING,    /* within a span */
    FREE,       /* the first unit of a free span */
    FREE_END,   /* the last one, if it has more than one */
    SLAB,       /* each unit of a slab */
    LARGE,      /* the first unit of a large block */
    WAS_LARGE,  /* within a free span: a large block began here */
};

/* The record of a unit. */
struct unit {
    _Atomic uint8_t kind; /* read under the lock of the pool, written by the owner of the span too */
    uint8_t class;     /* of a slab */
    uint8_t is_zero;   /* of a slab: what was never a block is zero */
    uint8_t is_current; /* of a slab: blocks are taken from its end */
    uint32_t offset;   /* bytes from the start of the slab to this unit; of a large block from here to its start */
    uint32_t count;    /* units of a span */
    uint32_t next, previous; /* neighbours in a list of slabs or free spans; 0 is none */
    /* Of a slab, in its first unit. */
    uint32_t used;      /* blocks that threads have */
    uint32_t free_count;
    uint32_t taken;     /* bytes from the start that were blocks once */
    void *free;         /* its free blocks */
    uint64_t bytes;     /* of a large block: what the program asked for */
} __attribute__((aligned(64)));

struct space {
    char *base;         /* NULL before `space_prepare` */
    size_t bytes;       /* of all regions */
    unsigned region_shift;
    unsigned regions;
    unsigned nodes;     /* regions whose memory lies on their node; that of the one behind them lies by the policies of the
                           program, and there is none if this is 0: one region is for the whole machine */
    struct unit *units;
    _Atomic uint64_t *dirty;   /* one bit for each unit that may have pages */
    uint64_t secret, seal;
};

extern struct space space;

/* Finds a place for this number of regions, of which the first ones are those of nodes. False if there is none. */
bool space_prepare(unsigned regions, unsigned nodes);

static inline size_t space_offset(const void *block)
{
    return (size_t)((const char *)block - space.base);
}

/* Whether it is an address of a region; false for those before the base too. */
static inline bool space_has(size_t offset)
{
    return offset < space.bytes;
}

static inline struct unit *unit_at(size_t offset)
{
    return &space.units[offset >> UNIT_SHIFT];
}

static inline unsigned region_of(size_t offset)
{
    return (unsigned)(offset >> space.region_shift);
}

static inline uint32_t unit_number(const struct unit *unit)
{
    return (uint32_t)(unit - space.units);
}

static inline char *unit_start(uint32_t number)
{
    return space.base + ((size_t)number << UNIT_SHIFT);
}

static inline unsigned kind_of(const struct unit *unit)
{
    return atomic_load_explicit(&unit->kind, memory_order_relaxed);
}

/* What was written to the record before is there for who reads the kind in a block's place: the block reaches other threads
 * by the program's own synchronization. */
static inline void set_kind(struct unit *unit, enum unit_kind kind)
{
    atomic_store_explicit(&unit->kind, (uint8_t)kind, memory_order_relaxed);
}

/* Makes the records of units usable, which they are up to `from`, unless they begin there. */
enum os_mapped space_record(uint32_t from, uint32_t to, bool begins);
/* Records that begin this number of units, or more, after the end of others are apart from those. */
uint32_t space_apart(void);
/* Makes units usable, and gives their addresses back. */
enum os_mapped space_map(uint32_t first, uint32_t count);
bool space_unmap(uint32_t first, uint32_t count);

/* Whether units may have pages: marks them, clears them, counts them, finds the end of a run of equal ones. */
void dirty_set(uint32_t first, uint32_t count);
void dirty_clear(uint32_t first, uint32_t count);
uint32_t dirty_count(uint32_t first, uint32_t count);
bool dirty_is(uint32_t unit);

/* Memory for the library's own data, filled with zeros, never given back; NULL if there is none. */
void *space_metadata(size_t bytes);

/* Around a fork. */
void space_lock(void);
void space_unlock(void);

#endif
