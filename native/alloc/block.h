/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Free blocks in lists. A link is encoded, and sealed with the address of its block: a block with the right seal is free, so a
 * double free is seen, and a link that something wrote over has the wrong one. */
#ifndef ALLOC_BLOCK_H
#define ALLOC_BLOCK_H

#include "report.h"
#include "space.h"

struct block {
    uintptr_t link, seal;
};

static inline uintptr_t seal_of(const struct block *block)
{
    return (block->link + (uintptr_t)block) ^ space.seal;
}

static inline void block_link(struct block *block, struct block *next)
{
    block->link = (uintptr_t)next ^ space.secret;
    block->seal = seal_of(block);
}

static inline bool block_is_free(const struct block *block)
{
    return __builtin_expect(block->seal == seal_of(block), 0);
}

/* The block after this one in a list, which stays sealed. */
static inline struct block *block_next(const struct block *block)
{
    if (__builtin_expect(block->seal != seal_of(block), 0))
        misuse("overwritten after it was freed: block", block);
    return (struct block *)(block->link ^ space.secret);
}

/* The same when the block leaves the list: it is no longer free. */
static inline struct block *block_leave(struct block *block)
{
    struct block *next = block_next(block);
    block->seal = 0;
    return next;
}

/* Blocks of one class, linked. */
struct chain {
    struct block *head;
    uint32_t count;
};

#endif
