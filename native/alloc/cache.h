/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The blocks of a thread: for each class a list, a spare list of a batch, and a range of new blocks. All lie on the node where
 * the thread runs: when it runs on another one, they go back, and blocks of other nodes never come in. */
#ifndef ALLOC_CACHE_H
#define ALLOC_CACHE_H

#include "center.h"

struct list {
    struct block *head;
    uint32_t count, limit;
    struct chain spare;
    char *from, *to;    /* new blocks */
    bool is_zero;       /* they are zero */
    bool gave;          /* blocks went to other threads since some came from there */
    bool is_busy;       /* it was filled or emptied since it was last looked at */
};

/* Blocks for another node. */
struct away {
    struct chain chain;
    struct block *tail;
};

struct cache {
    const _Atomic uint32_t *place;     /* a word that changes when the thread goes to another node */
    uint32_t seen_place;               /* its value when the thread was where its blocks lie */
    _Atomic uint32_t fixed_place;      /* the word where there is none, or no nodes */
    struct region *region;
    struct cache *next;                /* of those without a thread */
    uint32_t steps;                    /* fillings and emptyings of all lists */
    uint32_t looked_at;                /* the class whose list was looked at last */
    struct away *away;                 /* one for each region, behind the lists */
    struct list lists[];               /* one for each class */
};

/* That of this thread; NULL before its first block and after its end. */
extern __thread struct cache *cache_mine __attribute__((tls_model("initial-exec")));

/* A cache for the thread; NULL if there is no memory. To be returned with `cache_return` when the thread is at its end. */
struct cache *cache_begin(void);
void cache_return(struct cache *cache);

/* Gives all its blocks back. */
void cache_empty(struct cache *cache);

/* In the child of a fork: what other threads had is lost. */
void caches_unlock(void);
void caches_lock(void);

/* Whether the thread runs where its blocks lie, as far as its word tells. */
static inline bool cache_is_near(const struct cache *cache)
{
    return atomic_load_explicit(cache->place, memory_order_relaxed) == cache->seen_place;
}

/* When the word has changed, or the thread's memory policy: if the thread runs on another node, gives all blocks back and begins
 * there. */
void cache_move(struct cache *cache);

/* The same before a large block, which comes from where the thread runs. Without a word of the kernel the thread asks. */
static inline void cache_follow(struct cache *cache)
{
    if (!cache_is_near(cache) || (cache->place == &cache->fixed_place && space.nodes))
        cache_move(cache);
}

/* A block when the list is empty; NULL if there is no memory. */
void *cache_refill(struct cache *cache, unsigned class, bool *is_zero);

/* When a list has reached its limit. */
void cache_overflow(struct cache *cache, unsigned class);

/* A block of another node. */
void cache_send(struct cache *cache, unsigned region, struct block *block);

/* A block of the list; NULL if it is empty or the thread runs elsewhere. */
static inline void *cache_pop(struct cache *cache, unsigned class)
{
    struct list *list = &cache->lists[class];
    struct block *block = list->head;
    if (__builtin_expect(!block || !cache_is_near(cache), 0))
        return NULL;
    struct block *next = block_leave(block);
    __builtin_prefetch(next, 1);
    list->head = next;
    list->count--;
    return block;
}

/* A block from wherever there is one; NULL if there is no memory. */
static inline void *cache_take(struct cache *cache, unsigned class, bool *is_zero)
{
    void *block = cache_pop(cache, class);
    if (block)
        return block;
    if (!cache_is_near(cache))
        cache_move(cache);
    return cache_refill(cache, class, is_zero);
}

static inline void cache_put(struct cache *cache, unsigned class, struct block *block)
{
    struct list *list = &cache->lists[class];
    block_link(block, list->head);
    list->head = block;
    if (__builtin_expect(++list->count >= list->limit, 0))
        cache_overflow(cache, class);
}

#endif
