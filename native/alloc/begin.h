/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The first block of a process and of a thread, the end of a thread, and forks. */
#ifndef ALLOC_BEGIN_H
#define ALLOC_BEGIN_H

#include "cache.h"

/* The cache of a thread that has none: at its first block, or at its end. NULL if there is no memory. What was got at the end
 * of a thread is returned with `cache_after`, which does nothing else. */
struct cache *cache_slowly(void);
void cache_after(struct cache *cache);

static inline struct cache *cache_get(void)
{
    struct cache *cache = cache_mine;
    return __builtin_expect(cache != NULL, 1) ? cache : cache_slowly();
}

/* The same, with the region of the node where the thread runs. */
static inline struct cache *cache_here(void)
{
    struct cache *cache = cache_get();
    if (cache && !cache_is_near(cache))
        cache_move(cache);
    return cache;
}

#endif
