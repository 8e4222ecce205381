/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pool.h"
#include "pressure.h"
#include "settings.h"

enum {
    EXACT_BINS = 16,    /* spans of less units than this have a bin for each count */
    HUGE_UNITS = (2 << 20) / UNIT,
    MOST_STEPS = 64,    /* of decay, after which nothing is left */
    REPLACED_ABOVE = (8 << 20) / UNIT,
    LOOK_AT = 32,       /* spans that are compared in a bin */
    LOOKS_ABOVE = (2 << 20) / UNIT, /* free units for which memory may be short */
    FIRST_COMMIT = 16,   /* units; each commit is twice the one before, so that a small heap never covers a huge page */
    LARGEST_COMMIT = (32 << 20) / UNIT,
};

void pool_prepare(struct pool *pool, struct pool *other, uint32_t first, uint32_t end, uint32_t huge_from, unsigned node,
                  struct pool_counts *counts)
{
    pool->other = other;
    pool->node = node;
    pool->first = pool->frontier = pool->committed = first;
    pool->huge_from = huge_from;
    pool->end = end;
    pool->counts = counts;
}

static unsigned bin_of(uint32_t count)
{
    if (count < EXACT_BINS)
        return count;
    unsigned order = 31 - (unsigned)__builtin_clz(count);
    return EXACT_BINS + (order - 4) * 4 + ((count >> (order - 2)) & 3);
}

static void list_add(struct pool *pool, uint32_t first, uint32_t count)
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

static void list_remove(struct pool *pool, uint32_t first)
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

/* The units of a free span before its first one at the alignment, a power of two. */
static uint32_t lead_of(uint32_t first, uint32_t alignment)
{
    return (uint32_t)-((uintptr_t)unit_start(first) >> UNIT_SHIFT) & (alignment - 1);
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

static uint32_t find(const struct pool *pool, uint32_t count, uint32_t alignment)
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

/* Calls an action for each run of units of a span that may have pages. */
static void for_dirty(uint32_t first, uint32_t count, bool (*act)(void *, size_t))
{
    uint32_t end = first + count;
    while (first < end) {
        uint32_t run = 0;
        while (first < end && !dirty_is(first))
            first++;
        while (first + run < end && dirty_is(first + run))
            run++;
        if (run)
            act(unit_start(first), (size_t)run << UNIT_SHIFT);
        first += run;
    }
}

/* Walks the free spans from the largest on while `kept` is above a limit. */
static void release(struct pool *pool, uint32_t limit, bool drops)
{
    struct pool_counts *counts = pool->counts;
    for (unsigned bin = POOL_BINS; bin-- > 1;) {
        for (uint32_t at = pool->bins[bin]; at; at = space.units[at].next) {
            uint32_t count = space.units[at].count, dirty = dirty_count(at, count);
            if ((drops ? counts->kept : counts->kept - counts->offered) <= limit)
                return;
            if (dirty == 0)
                continue;
            for_dirty(at, count, drops ? os_discard : os_offer);
            if (drops) {
                dirty_clear(at, count);
                counts->kept -= dirty;
                counts->offered = counts->offered > counts->kept ? counts->kept : counts->offered;
            } else {
                counts->offered = counts->offered + dirty > counts->kept ? counts->kept : counts->offered + dirty;
            }
        }
    }
}

void pool_advise(const struct pool *pool, uint32_t first, uint32_t count)
{
    uint32_t end = first + count, huge = first > pool->huge_from ? first : pool->huge_from;
    /* Where policies are refused, memory lies on the node of the thread that touches it first, which is ours. */
    if (space.binds)
        (void)os_prefer(unit_start(first), (size_t)count << UNIT_SHIFT, pool->node);
    if (end > huge)
        os_want_huge(unit_start(huge), (size_t)(end - huge) << UNIT_SHIFT);
}

/* Makes units up to `frontier` usable. */
static bool commit_to(struct pool *pool, uint32_t frontier)
{
    if (frontier <= pool->committed)
        return true;
    uint32_t present = pool->committed - pool->first, more = present < FIRST_COMMIT ? FIRST_COMMIT : present;
    more = more > LARGEST_COMMIT ? LARGEST_COMMIT : more;
    if (more < frontier - pool->committed)
        more = frontier - pool->committed;
    if (more > pool->end - pool->committed)
        more = pool->end - pool->committed;
    uint32_t from = pool->committed, to = from + more;
    pressure_look((size_t)more << UNIT_SHIFT);
    if (pressure_is_high())
        release(pool, 0, true);
    if (!settings_may_map() || !space_commit(from, more))
        return false;
    pool_advise(pool, from, more);
    pool->committed = to;
    pool->counts->mapped = to - pool->first;
    return true;
}

/* The first unit of the free span that ends at this unit, or the unit itself. */
static uint32_t start_of_free_before(const struct pool *pool, uint32_t unit)
{
    if (unit == pool->first)
        return unit;
    const struct unit *before = &space.units[unit - 1];
    if (kind_of(before) == FREE)
        return unit - 1;
    return kind_of(before) == FREE_END ? unit - before->count : unit;
}

/* Takes free units out of the counts; they are in use from now on. Returns how many have no pages yet. */
static uint32_t count_taken(struct pool *pool, uint32_t first, uint32_t count)
{
    struct pool_counts *counts = pool->counts;
    uint32_t dirty = dirty_count(first, count);
    counts->kept -= dirty;
    if (counts->offered > counts->kept)
        counts->offered = counts->kept;
    counts->recycled += dirty;
    counts->taken += count;
    if (pool->lately < counts->taken)
        pool->lately = (uint32_t)counts->taken;
    return count - dirty;
}

/* A span from the frontier, with the free span before it. */
static uint32_t take_new(struct pool *pool, uint32_t count, uint32_t alignment)
{
    uint32_t start = start_of_free_before(pool, pool->frontier);
    uint32_t first = start + lead_of(start, alignment);
    if (first > pool->end || count > pool->end - first || !commit_to(pool, first + count))
        return 0;
    if (start < pool->frontier)
        list_remove(pool, start);
    if (first > start)
        list_add(pool, start, first - start);
    if (first + count < pool->frontier)
        list_add(pool, first + count, pool->frontier - first - count);
    else
        pool->frontier = first + count;
    return first;
}

/* A program that goes from small blocks to large ones, or back, has new pages here: as many go back there. */
static void replace(struct pool *other, uint32_t units)
{
    lock(&other->lock);
    uint32_t kept = (uint32_t)other->counts->kept, left = kept > units ? kept - units : 0;
    if (kept > REPLACED_ABOVE)
        release(other, left > REPLACED_ABOVE ? left : REPLACED_ABOVE, true);
    unlock(&other->lock);
}

struct span pool_take(struct pool *pool, uint32_t count, uint32_t room, uint32_t alignment)
{
    lock(&pool->lock);
    uint32_t found = find(pool, count, alignment), first;
    if (found) {
        uint32_t all = space.units[found].count, lead = lead_of(found, alignment);
        first = found + lead;
        list_remove(pool, found);
        if (lead)
            list_add(pool, found, lead);
        if (all > lead + count)
            list_add(pool, first + count, all - lead - count);
    } else {
        first = take_new(pool, count + room, alignment);
        if (first)
            count += room;
        else if (room)
            first = take_new(pool, count, alignment);
    }
    uint32_t fresh = first ? count_taken(pool, first, count) : 0;
    unlock(&pool->lock);
    if (fresh)
        replace(pool->other, fresh);
    return (struct span){first, count};
}

bool pool_extend(struct pool *pool, uint32_t first, uint32_t count, uint32_t longer)
{
    uint32_t next = first + count, more = longer - count;
    bool extended = false;
    lock(&pool->lock);
    uint32_t there = next < pool->frontier && kind_of(&space.units[next]) == FREE ? space.units[next].count : 0;
    bool reaches = next + there == pool->frontier;
    if (there >= more || (reaches && longer <= pool->end - first && commit_to(pool, first + longer))) {
        if (there)
            list_remove(pool, next);
        if (there > more)
            list_add(pool, first + longer, there - more);
        if (first + longer > pool->frontier)
            pool->frontier = first + longer;
        count_taken(pool, next, more);
        extended = true;
    }
    unlock(&pool->lock);
    return extended;
}

/* What was in use lately becomes what is, half of the way in less than a second. */
static void decay(struct pool *pool, uint32_t now)
{
    uint32_t steps = now - pool->seen_time, taken = (uint32_t)pool->counts->taken;
    pool->seen_time = now;
    for (steps = steps > MOST_STEPS ? MOST_STEPS : steps; steps > 0; steps--)
        pool->lately -= (pool->lately - taken) / 8;
    if (pool->lately < taken)
        pool->lately = taken;
}

/* Keeps what is free below the limits. */
static void settle(struct pool *pool)
{
    uint32_t now = os_eighths();
    if (pool->counts->kept > LOOKS_ABOVE)
        pressure_look_at(now);
    decay(pool, now);
    const struct pool_counts *counts = pool->counts;
    uint32_t taken = (uint32_t)counts->taken;
    uint32_t keep = settings_units_kept(taken, pool->lately), drop = settings_units_offered(taken, pool->lately);
    size_t most = pressure_most_kept();
    if (most != SIZE_MAX && keep > (most >> UNIT_SHIFT) / (2 * space.regions))
        keep = (uint32_t)((most >> UNIT_SHIFT) / (2 * space.regions));
    if (pressure_is_high())
        keep = drop = 0;
    if (counts->kept > drop)
        release(pool, drop, true);
    if (counts->kept - counts->offered > keep)
        release(pool, keep, false);
}

/* Whether units up to the next borders of huge pages have pages too: a huge page has them all. */
static void count_huge(struct pool *pool, uint32_t first, uint32_t end, uint32_t start_of_span, uint32_t end_of_span)
{
    uint32_t from = first & ~(uint32_t)(HUGE_UNITS - 1), to = (end + HUGE_UNITS - 1) & ~(uint32_t)(HUGE_UNITS - 1);
    from = from < start_of_span ? start_of_span : from;
    to = to > end_of_span ? end_of_span : to;
    if (first < pool->huge_from || to <= from)
        return;
    uint32_t before = dirty_count(from, to - from);
    dirty_set(from, to - from);
    pool->counts->kept += to - from - before;
}

void pool_give(struct pool *pool, uint32_t first, uint32_t count, bool has_pages)
{
    lock(&pool->lock);
    pool->counts->taken -= count;
    if (has_pages) {
        dirty_set(first, count);
        pool->counts->kept += count;
    } else {
        dirty_clear(first, count);
    }
    uint32_t start = start_of_free_before(pool, first), end = first + count;
    if (start < first)
        list_remove(pool, start);
    if (end < pool->frontier && kind_of(&space.units[end]) == FREE) {
        uint32_t after = space.units[end].count;
        list_remove(pool, end);
        end += after;
    }
    if (has_pages)
        count_huge(pool, first, first + count, start, end);
    list_add(pool, start, end - start);
    settle(pool);
    unlock(&pool->lock);
}

bool pool_drop(struct pool *pool)
{
    lock(&pool->lock);
    uint64_t before = pool->counts->kept;
    release(pool, 0, true);
    bool dropped = pool->counts->kept < before;
    unlock(&pool->lock);
    return dropped;
}
