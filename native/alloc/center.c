/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "center.h"
#include "settings.h"

enum {
    RANGE_BYTES = 8 << 10,      /* of new blocks for a thread */
    WAITING_BYTES = 128 << 10,  /* of a class, in chains */
    FULL_INBOX = 8192,          /* blocks that wait; above it, the thread that brings more sorts them */
    SMALL_HUGE_FROM = (8 << 20) / UNIT,  /* units without huge pages */
    LARGE_HUGE_FROM = (4 << 20) / UNIT,
};

struct region *regions;

static void prepare(struct region *region, unsigned node)
{
    uint32_t units = (uint32_t)(space.bytes >> UNIT_SHIFT) / space.regions;
    uint32_t first = node * units, middle = first + units / 4, end = first + units;
    struct region_counts *counts = &numalloc_counts.region[node];
    uint32_t never = settings.huge == HUGE_NEVER ? end : 0, at_once = settings.huge == HUGE_ALWAYS;
    /* Unit 0 is none. */
    first += first == 0;
    pool_prepare(&region->small, &region->large, first, middle, never ? never : at_once ? 0 : first + SMALL_HUGE_FROM, node,
                 &counts->small);
    pool_prepare(&region->large, &region->small, middle, end, never ? never : at_once ? 0 : middle + LARGE_HUGE_FROM, node,
                 &counts->large);
    region->inbox.received = &counts->received;
}

bool regions_prepare(unsigned count)
{
    struct region *all = space_metadata(count * sizeof *all);
    if (!all)
        return false;
    for (unsigned node = 0; node < count; node++)
        prepare(&all[node], node);
    regions = all;
    return true;
}

static void partial_add(struct center *center, uint32_t slab)
{
    struct unit *unit = &space.units[slab];
    unit->previous = 0;
    unit->next = center->partial;
    if (unit->next)
        space.units[unit->next].previous = slab;
    center->partial = slab;
}

static void partial_remove(struct center *center, uint32_t slab)
{
    struct unit *unit = &space.units[slab];
    if (unit->next)
        space.units[unit->next].previous = unit->previous;
    if (unit->previous)
        space.units[unit->previous].next = unit->next;
    else
        center->partial = unit->next;
}

/* A slab whose blocks nobody had yet; 0 if there is no memory. */
static uint32_t slab_new(struct region *region, unsigned class)
{
    uint32_t count = size_classes[class].slab, alignment = size_classes[class].slab_alignment;
    uint32_t first = pool_take(&region->small, count, 0, alignment).first;
    if (!first)
        first = pool_take(&region->large, count, 0, alignment).first;
    if (!first)
        return 0;
    bool is_zero = dirty_count(first, count) == 0;
    for (uint32_t i = 0; i < count; i++) {
        struct unit *unit = &space.units[first + i];
        set_kind(unit, SLAB);
        unit->class = (uint8_t)class;
        unit->is_zero = is_zero;
        unit->is_current = i == 0;
        unit->offset = i << UNIT_SHIFT;
        unit->count = count;
        unit->used = unit->free_count = unit->taken = 0;
        unit->free = NULL;
    }
    return first;
}

static void slab_end(struct center *center, uint32_t slab)
{
    uint32_t count = space.units[slab].count;
    partial_remove(center, slab);
    for (uint32_t i = 0; i < count; i++)
        set_kind(&space.units[slab + i], NOTHING);
    pool_give(pool_of(slab), slab, count, true);
}

static uint32_t slab_bytes(const struct unit *slab, unsigned class)
{
    uint32_t size = size_classes[class].size;
    return (slab->count << UNIT_SHIFT) / size * size;
}

/* New blocks from the end of the current slab. */
static bool supply_range(struct region *region, struct center *center, unsigned class, struct supply *supply)
{
    if (!center->current) {
        center->current = slab_new(region, class);
        if (!center->current)
            return false;
    }
    struct unit *slab = &space.units[center->current];
    uint32_t size = size_classes[class].size, left = slab_bytes(slab, class) - slab->taken;
    uint32_t bytes = size > RANGE_BYTES ? size : RANGE_BYTES / size * size;
    bytes = bytes > left ? left : bytes;
    supply->from = unit_start(center->current) + slab->taken;
    supply->to = supply->from + bytes;
    supply->is_zero = slab->is_zero;
    slab->taken += bytes;
    slab->used += bytes / size;
    if (bytes == left) {
        slab->is_current = 0;
        if (slab->free)
            partial_add(center, center->current);
        center->current = 0;
    }
    return true;
}

static void supply_slab_list(struct unit *slab, struct supply *supply)
{
    supply->chain = (struct chain){slab->free, slab->free_count};
    slab->used += slab->free_count;
    slab->free = NULL;
    slab->free_count = 0;
}

bool center_supply(struct region *region, unsigned class, struct supply *supply)
{
    struct center *center = &region->centers[class];
    bool there = true;
    *supply = (struct supply){0};
    lock(&center->lock);
    if (center->chains) {
        supply->chain = center->chain[--center->chains];
        center->waiting -= supply->chain.count;
        center->is_busy = true;
    } else if (center->partial) {
        struct unit *slab = &space.units[center->partial];
        partial_remove(center, center->partial);
        supply_slab_list(slab, supply);
    } else if (center->current && space.units[center->current].free) {
        supply_slab_list(&space.units[center->current], supply);
    } else {
        there = supply_range(region, center, class, supply);
    }
    unlock(&center->lock);
    return there;
}

/* Back to its slab. */
static void put_block(struct center *center, struct block *block)
{
    struct unit *unit = unit_at(space_offset(block));
    uint32_t number = unit_number(unit) - (unit->offset >> UNIT_SHIFT);
    struct unit *slab = &space.units[number];
    bool was_full = !slab->free;
    block_link(block, slab->free);
    slab->free = block;
    slab->free_count++;
    slab->used--;
    if (slab->is_current)
        return;
    if (was_full)
        partial_add(center, number);
    if (slab->used == 0)
        slab_end(center, number);
}

static void put_chain(struct center *center, struct chain chain)
{
    for (struct block *block = chain.head, *next; block; block = next) {
        next = block_next(block);
        put_block(center, block);
    }
}

/* Blocks of a class that wait for a thread. */
static uint32_t most_waiting(unsigned class)
{
    uint32_t blocks = WAITING_BYTES / size_classes[class].size;
    return settings.profile == LOWMEM ? 2 * size_classes[class].batch : blocks;
}

void center_accept(struct region *region, unsigned class, struct chain chain)
{
    struct center *center = &region->centers[class];
    if (!chain.head)
        return;
    lock(&center->lock);
    if (center->chains < MOST_CHAINS && center->waiting + chain.count <= most_waiting(class)) {
        center->chain[center->chains++] = chain;
        center->waiting += chain.count;
        center->is_busy = true;
    } else {
        put_chain(center, chain);
    }
    unlock(&center->lock);
}

void center_accept_range(struct region *region, unsigned class, char *from, char *to)
{
    struct center *center = &region->centers[class];
    uint32_t size = size_classes[class].size;
    lock(&center->lock);
    struct unit *slab = center->current ? &space.units[center->current] : NULL;
    if (slab && to == unit_start(center->current) + slab->taken && from >= unit_start(center->current)) {
        slab->taken -= (uint32_t)(to - from);
        slab->used -= (uint32_t)(to - from) / size;
    } else {
        for (; from < to; from += size)
            put_block(center, (struct block *)from);
    }
    unlock(&center->lock);
}

void center_return(struct region *region, unsigned class, struct chain chain)
{
    struct center *center = &region->centers[class];
    if (!chain.head)
        return;
    lock(&center->lock);
    put_chain(center, chain);
    unlock(&center->lock);
}

void center_drain(struct region *region, unsigned class, bool if_idle)
{
    struct center *center = &region->centers[class];
    lock(&center->lock);
    if (!if_idle || !center->is_busy) {
        while (center->chains)
            put_chain(center, center->chain[--center->chains]);
        center->waiting = 0;
    }
    center->is_busy = false;
    unlock(&center->lock);
}

struct chain inbox_take(struct region *region)
{
    struct inbox *inbox = &region->inbox;
    lock(&inbox->lock);
    struct chain all = {inbox->head, atomic_load_explicit(&inbox->count, memory_order_relaxed)};
    inbox->head = NULL;
    atomic_store_explicit(&inbox->count, 0, memory_order_relaxed);
    unlock(&inbox->lock);
    return all;
}

static void sort_out(struct region *region)
{
    struct chain all = inbox_take(region);
    for (struct block *block = all.head, *next; block; block = next) {
        next = block_next(block);
        struct center *center = &region->centers[unit_at(space_offset(block))->class];
        lock(&center->lock);
        put_block(center, block);
        unlock(&center->lock);
    }
}

void inbox_accept(struct region *region, struct chain chain, struct block *tail)
{
    struct inbox *inbox = &region->inbox;
    lock(&inbox->lock);
    block_link(tail, inbox->head);
    inbox->head = chain.head;
    *inbox->received += chain.count;
    uint32_t count = atomic_load_explicit(&inbox->count, memory_order_relaxed) + chain.count;
    atomic_store_explicit(&inbox->count, count, memory_order_relaxed);
    unlock(&inbox->lock);
    if (count > FULL_INBOX)
        sort_out(region);
}

void regions_lock(void)
{
    for (unsigned i = 0; i < space.regions; i++) {
        for (unsigned class = 1; class < class_count; class ++)
            lock(&regions[i].centers[class].lock);
        lock(&regions[i].inbox.lock);
    }
    for (unsigned i = 0; i < space.regions; i++) {
        lock(&regions[i].small.lock);
        lock(&regions[i].large.lock);
    }
    space_lock();
}

void regions_unlock(void)
{
    space_unlock();
    for (unsigned i = 0; i < space.regions; i++) {
        unlock(&regions[i].small.lock);
        unlock(&regions[i].large.lock);
        unlock(&regions[i].inbox.lock);
        for (unsigned class = 1; class < class_count; class ++)
            unlock(&regions[i].centers[class].lock);
    }
}
