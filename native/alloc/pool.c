/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bins.h"
#include "pressure.h"
#include "settings.h"

enum {
    HUGE_UNITS = (2 << 20) / UNIT,
    MOST_STEPS = 64,    /* of decay, after which nothing is left */
    REPLACED_ABOVE = (8 << 20) / UNIT,
    LOOKS_ABOVE = (2 << 20) / UNIT, /* free units for which memory may be short */
    REFUSED_TOGETHER = (1 << 20) / UNIT, /* units of which one that is locked keeps the others */
    FIRST_STEP = 16,   /* units that are mapped at once; each step is twice the one before, so that a small heap never covers a
                          huge page */
    LARGEST_STEP = (32 << 20) / UNIT,
};

void pool_prepare(struct pool *pool, struct pool *other, uint32_t first, uint32_t end, uint32_t huge_from, unsigned node,
                  struct pool_counts *counts)
{
    pool->other = other;
    pool->node = node;
    pool->first = pool->begin = pool->frontier = pool->mapped = pool->recorded = first;
    pool->huge_from = huge_from;
    pool->end = end;
    pool->counts = counts;
}

/* Gives the kernel the pages of units, or offers them. Returns of how many it took them: it refuses a range with a page that the
 * program locked in memory, which keeps its content. Then the halves are tried, so that little is kept beside that page. */
static uint32_t let_go_run(uint32_t first, uint32_t count, bool drops)
{
    if ((drops ? os_discard : os_offer)(unit_start(first), (size_t)count << UNIT_SHIFT)) {
        if (drops)
            dirty_clear(first, count);
        return count;
    }
    if (count <= REFUSED_TOGETHER)
        return 0;
    uint32_t half = count / 2;
    return let_go_run(first, half, drops) + let_go_run(first + half, count - half, drops);
}

/* The same for each run of units of a span that may have pages. */
static uint32_t let_go(uint32_t first, uint32_t count, bool drops)
{
    uint32_t end = first + count, gone = 0;
    while (first < end) {
        uint32_t run = 0;
        while (first < end && !dirty_is(first))
            first++;
        while (first + run < end && dirty_is(first + run))
            run++;
        if (run)
            gone += let_go_run(first, run, drops);
        first += run;
    }
    return gone;
}

/* Walks the free spans from the largest on while `kept` is above a limit. What the kernel refused is not tried again for an
 * eighth of a second. */
static void release(struct pool *pool, uint32_t limit, bool drops)
{
    struct pool_counts *counts = pool->counts;
    for (unsigned bin = POOL_BINS; bin-- > 1;) {
        for (uint32_t at = pool->bins[bin]; at; at = space.units[at].next) {
            uint32_t count = space.units[at].count, dirty = dirty_count(at, count);
            if ((drops ? counts->kept : counts->kept - counts->offered) <= (uint64_t)limit + pool->refused)
                return;
            if (dirty == 0)
                continue;
            uint32_t gone = let_go(at, count, drops);
            pool->refused += dirty - gone;
            if (drops) {
                counts->kept -= gone;
                counts->offered = counts->offered > counts->kept ? counts->kept : counts->offered;
            } else {
                counts->offered = counts->offered + gone > counts->kept ? counts->kept : counts->offered + gone;
            }
        }
    }
}

void pool_advise(const struct pool *pool, uint32_t first, uint32_t count)
{
    uint32_t end = first + count, huge = first > pool->huge_from ? first : pool->huge_from;
    /* Where policies are refused, memory lies on the node of the thread that touches it first, which is ours. */
    if (pool->node < space.nodes)
        (void)os_prefer(unit_start(first), (size_t)count << UNIT_SHIFT, pool->node);
    if (end > huge)
        os_want_huge(unit_start(huge), (size_t)(end - huge) << UNIT_SHIFT);
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

/* Makes units from the mapped ones on usable. */
static enum os_mapped map_more(struct pool *pool, uint32_t more)
{
    uint32_t from = pool->mapped, to = from + more;
    if (!settings_may_map())
        return OS_NO_MEMORY;
    enum os_mapped mapped = space_map(from, more);
    if (mapped != OS_MAPPED)
        return mapped;
    if (to > pool->recorded) {
        mapped = space_record(pool->recorded, to, pool->recorded == pool->begin);
        if (mapped != OS_MAPPED) {
            /* If they stay, they are occupied the next time. */
            (void)space_unmap(from, more);
            return mapped;
        }
        pool->recorded = to;
    }
    pool_advise(pool, from, more);
    pool->mapped = to;
    pool->counts->mapped += more;
    return OS_MAPPED;
}

/* Something else lies behind the mapped units: goes on at a distance from them. What was mapped and never taken becomes free. The
 * records at both ends of the gap tell that no free span is there. */
static bool go_on_behind(struct pool *pool, uint32_t distance)
{
    uint32_t apart = space_apart(), start = start_of_free_before(pool, pool->frontier), end = pool->mapped;
    if (distance > UINT32_MAX / 4 || pool->end - pool->recorded < apart + distance)
        return false;
    uint32_t next = (pool->recorded + apart + distance) / apart * apart;
    if (pool->recorded == pool->mapped && pool->recorded > pool->begin) {
        if (space_record(pool->recorded, pool->recorded + 1, false) != OS_MAPPED)
            return false;
    }
    if (next >= pool->end || space_record(next - 1, next, true) != OS_MAPPED)
        return false;
    if (end > pool->frontier) {
        if (start < pool->frontier)
            bins_remove(pool, start);
        bins_add(pool, start, end - start);
    }
    pool->begin = pool->frontier = pool->mapped = pool->recorded = next;
    return true;
}

/* How many units are mapped at once: as many as there are, so that a small heap stays small. */
static uint32_t step_to(const struct pool *pool, uint32_t frontier)
{
    uint32_t present = (uint32_t)pool->counts->mapped, more = present < FIRST_STEP ? FIRST_STEP : present;
    more = more > LARGEST_STEP ? LARGEST_STEP : more;
    if (more < frontier - pool->mapped)
        more = frontier - pool->mapped;
    if (more > pool->end - pool->mapped)
        more = pool->end - pool->mapped;
    return more;
}

/* Makes units up to `frontier` usable. */
static enum os_mapped map_to(struct pool *pool, uint32_t frontier)
{
    if (frontier <= pool->mapped)
        return OS_MAPPED;
    uint32_t more = step_to(pool, frontier), least = frontier - pool->mapped;
    pressure_look((size_t)more << UNIT_SHIFT);
    if (pressure_is_high())
        release(pool, 0, true);
    enum os_mapped mapped = map_more(pool, more);
    /* At a limit, or before something else, there may be room for what is needed. */
    if (mapped != OS_MAPPED && least < more)
        mapped = map_more(pool, least);
    return mapped;
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
static enum os_mapped take_at(struct pool *pool, uint32_t count, uint32_t alignment, uint32_t *taken)
{
    uint32_t start = start_of_free_before(pool, pool->frontier);
    uint32_t first = start + lead_of(start, alignment);
    if (first > pool->end || count > pool->end - first)
        return OS_NO_MEMORY;
    enum os_mapped mapped = map_to(pool, first + count);
    if (mapped != OS_MAPPED)
        return mapped;
    if (start < pool->frontier)
        bins_remove(pool, start);
    if (first > start)
        bins_add(pool, start, first - start);
    if (first + count < pool->frontier)
        bins_add(pool, first + count, pool->frontier - first - count);
    else
        pool->frontier = first + count;
    *taken = first;
    return OS_MAPPED;
}

/* The same, behind what else lies there; 0 if there is no memory. */
static uint32_t take_new(struct pool *pool, uint32_t count, uint32_t alignment)
{
    uint32_t first = 0, distance = space_apart();
    while (take_at(pool, count, alignment, &first) == OS_OCCUPIED) {
        if (!go_on_behind(pool, distance))
            return 0;
        distance *= 2;
    }
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
    uint32_t found = bins_find(pool, count, alignment), first;
    if (found) {
        uint32_t all = space.units[found].count, lead = lead_of(found, alignment);
        first = found + lead;
        bins_remove(pool, found);
        if (lead)
            bins_add(pool, found, lead);
        if (all > lead + count)
            bins_add(pool, first + count, all - lead - count);
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
    if (there >= more || (reaches && longer <= pool->end - first && map_to(pool, first + longer) == OS_MAPPED)) {
        if (there)
            bins_remove(pool, next);
        if (there > more)
            bins_add(pool, first + longer, there - more);
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
    if (steps > 0)
        pool->refused = 0;
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
        bins_remove(pool, start);
    if (end < pool->frontier && kind_of(&space.units[end]) == FREE) {
        uint32_t after = space.units[end].count;
        bins_remove(pool, end);
        end += after;
    }
    if (has_pages)
        count_huge(pool, first, first + count, start, end);
    bins_add(pool, start, end - start);
    settle(pool);
    unlock(&pool->lock);
}

/* Units that were mapped and never taken go with the free span before them. */
bool pool_shrink(struct pool *pool)
{
    lock(&pool->lock);
    uint32_t start = start_of_free_before(pool, pool->frontier), count = pool->mapped - start;
    bool shrinks = count > 0 && space_unmap(start, count);
    if (shrinks) {
        struct pool_counts *counts = pool->counts;
        uint32_t dirty = dirty_count(start, count);
        if (start < pool->frontier)
            bins_remove(pool, start);
        dirty_clear(start, count);
        counts->kept -= dirty;
        counts->offered = counts->offered > counts->kept ? counts->kept : counts->offered;
        counts->mapped -= count;
        pool->frontier = pool->mapped = start;
    }
    unlock(&pool->lock);
    return shrinks;
}

bool pool_drop(struct pool *pool)
{
    lock(&pool->lock);
    uint64_t before = pool->counts->kept;
    pool->refused = 0;
    release(pool, 0, true);
    bool dropped = pool->counts->kept < before;
    unlock(&pool->lock);
    return dropped;
}
