/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cache.h"
#include "settings.h"
#include <string.h>

enum {
    AWAY_BATCH = 64,
    AWAY_BYTES = 64 << 10,
    STEPS_PER_LOOK = 16,
    MOST_LIST_BYTES = 64 << 10, /* of a list that has grown */
};

__thread struct cache *cache_mine __attribute__((tls_model("initial-exec")));

static struct {
    struct lock lock;
    struct cache *without_thread;
} caches;

void caches_lock(void)
{
    lock(&caches.lock);
}

void caches_unlock(void)
{
    unlock(&caches.lock);
}

/* The region of the node where the thread's memory belongs now, or that of policies: a policy of the program comes first, and a node
 * without a region has memory where it is touched. */
static struct region *region_here(struct cache *cache)
{
    cache->seen_place = atomic_load_explicit(cache->place, memory_order_relaxed);
    unsigned node = space.nodes ? os_memory_node() : 0;
    return &regions[node < space.nodes ? node : space.nodes];
}

/* With NUMALLOC_CHECK every block leaves the thread at once, and whole chains are verified on their way. */
static void verify(struct chain chain)
{
    uint32_t count = 0;
    if (!settings.check)
        return;
    for (struct block *block = chain.head; block; block = block_next(block))
        count++;
    if (count != chain.count)
        misuse("overwritten after it was freed: a block in the list of", chain.head);
}

struct cache *cache_begin(void)
{
    lock(&caches.lock);
    struct cache *cache = caches.without_thread;
    if (cache)
        caches.without_thread = cache->next;
    unlock(&caches.lock);
    if (!cache) {
        size_t lists = class_count * sizeof *cache->lists;
        cache = space_metadata(sizeof *cache + lists + space.regions * sizeof *cache->away);
        if (!cache)
            return NULL;
        cache->away = (struct away *)(void *)((char *)cache->lists + lists);
        for (unsigned class = 1; class < class_count; class ++)
            cache->lists[class].limit = settings.check ? 1 : size_classes[class].batch;
    }
    const _Atomic uint32_t *word = space.nodes ? os_place_word() : NULL;
    cache->place = word ? word : &cache->fixed_place;
    cache->region = region_here(cache);
    return cache;
}

static void send_all(struct cache *cache, unsigned region)
{
    struct away *away = &cache->away[region];
    if (away->chain.head)
        inbox_accept(&regions[region], away->chain, away->tail);
    *away = (struct away){0};
}

void cache_empty(struct cache *cache)
{
    for (unsigned class = 1; class < class_count; class ++) {
        struct list *list = &cache->lists[class];
        center_accept(cache->region, class, list->spare);
        center_accept(cache->region, class, (struct chain){list->head, list->count});
        if (list->from < list->to)
            center_accept_range(cache->region, class, list->from, list->to);
        *list = (struct list){.limit = list->limit};
    }
    for (unsigned region = 0; region < space.regions; region++)
        send_all(cache, region);
}

void cache_return(struct cache *cache)
{
    cache_empty(cache);
    lock(&caches.lock);
    cache->next = caches.without_thread;
    caches.without_thread = cache;
    unlock(&caches.lock);
}

void cache_move(struct cache *cache)
{
    struct region *here = region_here(cache);
    if (here == cache->region)
        return;
    cache_empty(cache);
    cache->region = here;
}

/* Puts blocks that other nodes freed into the lists. */
static void receive(struct cache *cache)
{
    struct chain all = inbox_take(cache->region);
    for (struct block *block = all.head, *next; block; block = next) {
        next = block_next(block);
        cache_put(cache, unit_at(space_offset(block))->class, block);
    }
}

/* Each block in an idle list holds a whole slab. So one class after the other is looked at, and lists that did nothing since
 * then go back, those that wait for threads too. */
static void tidy(struct cache *cache)
{
    if (++cache->steps % STEPS_PER_LOOK)
        return;
    unsigned class = cache->looked_at % (class_count - 1) + 1;
    cache->looked_at = class;
    struct list *list = &cache->lists[class];
    if (!list->is_busy) {
        center_return(cache->region, class, list->spare);
        center_return(cache->region, class, (struct chain){list->head, list->count});
        list->spare = (struct chain){0};
        list->head = NULL;
        list->count = 0;
    }
    list->is_busy = false;
    center_drain(cache->region, class, true);
}

static bool supply(struct cache *cache, unsigned class)
{
    struct list *list = &cache->lists[class];
    struct supply supply;
    if (!center_supply(cache->region, class, &supply))
        return false;
    verify(supply.chain);
    /* Blocks that went and come again would have been better kept. */
    uint32_t most = MOST_LIST_BYTES / size_classes[class].size;
    if (supply.chain.head && list->gave && list->limit < most)
        list->limit *= 2;
    list->gave = false;
    list->head = supply.chain.head;
    list->count = supply.chain.count;
    if (supply.from < supply.to) {
        list->from = supply.from;
        list->to = supply.to;
        list->is_zero = supply.is_zero;
    }
    return true;
}

void *cache_refill(struct cache *cache, unsigned class, bool *is_zero)
{
    struct list *list = &cache->lists[class];
    uint32_t size = size_classes[class].size;
    cache_follow(cache);
    if (atomic_load_explicit(&cache->region->inbox.count, memory_order_relaxed) >= AWAY_BATCH)
        receive(cache);
    list->is_busy = true;
    tidy(cache);
    if (!list->head && list->spare.head) {
        list->head = list->spare.head;
        list->count = list->spare.count;
        list->spare = (struct chain){0};
    }
    if (!list->head && list->from == list->to && !supply(cache, class))
        return NULL;
    if (list->head) {
        struct block *block = list->head;
        list->head = block_leave(block);
        list->count--;
        return block;
    }
    char *block = list->from;
    list->from += size;
    *is_zero = list->is_zero;
    /* What it was before may have left a seal. A new page has one fault by this, and not two: the program may read first. */
    ((struct block *)block)->seal = 0;
    return block;
}

void cache_overflow(struct cache *cache, unsigned class)
{
    struct list *list = &cache->lists[class];
    struct chain full = {list->head, list->count};
    verify(list->spare);
    if (list->spare.head) {
        center_accept(cache->region, class, list->spare);
        list->gave = !settings.check;
    }
    list->spare = full;
    list->head = NULL;
    list->count = 0;
    list->is_busy = true;
    tidy(cache);
}

void cache_send(struct cache *cache, unsigned region, struct block *block)
{
    struct away *away = &cache->away[region];
    if (!away->chain.head)
        away->tail = block;
    block_link(block, away->chain.head);
    away->chain.head = block;
    if (++away->chain.count >= AWAY_BATCH || away->chain.count * size_classes[unit_at(space_offset(block))->class].size > AWAY_BYTES)
        send_all(cache, region);
}
