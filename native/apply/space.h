/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory of this library's blocks, in spans. They lie in a window of addresses in which the kernel maps nothing unless it is told to, so
 * that two instructions tell that a block is another allocator's. Nothing is reserved. */
#ifndef SPACE_H
#define SPACE_H

#include "cure.h"

enum { GRANULE_BITS = 16, LEAF_BITS = 14, LEAF_SPANS = 1 << LEAF_BITS };

struct span {
    uintptr_t from;
    size_t bytes;
    size_t usable;            /* of the only block; 0 where it has blocks of a pool */
    struct object *object;
    uint16_t node;            /* of all of it, or ANY_NODE */
    bool is_fresh;            /* a single block that was not used before */
    bool is_torn;             /* the program has changed its mapping */
    size_t mappings;          /* that it may need in the kernel */
    struct span *next, *previous;
    /* Of a pool. */
    struct pool *pool;
    uint32_t number;
    void *free;
    uint32_t free_count, carved, capacity;
};

/* The window: its bytes are 0 while it is not known. */
extern uintptr_t space_low __attribute__((visibility("hidden")));
extern size_t space_bytes __attribute__((visibility("hidden")));
extern struct span **_Atomic *space_tops __attribute__((visibility("hidden")));

void space_begin(void);

static inline bool space_may_have(const void *block)
{
    return RARELY((uintptr_t)block - space_low < space_bytes);
}

/* The span of an address in the window, or NULL. */
static inline struct span *space_span(const void *address)
{
    size_t granule = ((uintptr_t)address - space_low) >> GRANULE_BITS;
    struct span **leaf = atomic_load_explicit(&space_tops[granule >> LEAF_BITS], memory_order_acquire);
    return leaf ? __atomic_load_n(&leaf[granule % LEAF_SPANS], __ATOMIC_RELAXED) : NULL;
}

/* A new span with zeros. NULL without memory, or where the process has nearly as many mappings as allowed, which is counted. */
struct span *space_take(size_t bytes, size_t alignment, size_t mappings);
/* Unmaps it. */
void space_give(struct span *span);
/* The program changes the mapping at an address itself: that of a block is not used again when it is freed. */
void space_tear(const void *address);

/* Whether the process may have more mappings for policies; they are then counted. */
bool space_may_map(size_t mappings);

/* These are gone. */
void space_has_unmapped(size_t mappings);

void space_lock(void (*function)(struct lock *));

#endif
