/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "large.h"
#include "settings.h"
#include <string.h>

enum {
    MOST_STARTS = 16,
    STAGGER = 1024 + 64,            /* other sets of the caches; a block begins in the first unit of its span */
    STAGGER_SHARE = 32,             /* of a block: so much may be lost for it */
    MOVED_FROM = 1 << 20,           /* bytes: smaller ones are copied */
    ROOM_FROM = 16 << 20,           /* bytes: blocks that grow have room for it; a huge page at its start is little of them */
};

/* The bytes that a span is longer for it. */
static size_t stagger_room(size_t bytes)
{
    size_t room = bytes / STAGGER_SHARE, most = (MOST_STARTS - 1) * STAGGER;
    return room < most ? room : most;
}

/* The distance of a block from the start of its span of these bytes. It is always the same for the same place and size, so
 * that a block that is used again has the pages of the one before. Arrays of one size lie at equal steps: multiplied by the
 * golden ratio, their high bits differ at nearly all of these; where only the low ones of the place counted, all arrays of
 * 2 MiB began at the same distance. */
static uint32_t stagger_at(uint32_t unit, size_t bytes, size_t span)
{
    size_t starts = (span - bytes) / STAGGER + 1;
    uint32_t most = (uint32_t)(starts < MOST_STARTS ? starts : MOST_STARTS);
    uint32_t mixed = (unit ^ unit >> 4) * 0x9E3779B1u;
    return (uint32_t)((uint64_t)mixed * most >> 32) * STAGGER;
}

static uint32_t units_for(size_t bytes)
{
    return (uint32_t)((bytes + UNIT - 1) >> UNIT_SHIFT);
}

/* A span of the region, or else of another one, or else where small blocks are: what one does not need serves all. */
static struct span take_of(unsigned region, uint32_t units, uint32_t room, uint32_t alignment)
{
    struct span span = pool_take(&regions[region].large, units, room, alignment);
    for (unsigned other = 0; !span.first && other < space.regions; other++) {
        if (other != region)
            span = pool_take(&regions[other].large, units, 0, alignment);
    }
    for (unsigned other = 0; !span.first && other < space.regions; other++)
        span = pool_take(&regions[(region + other) % space.regions].small, units, 0, alignment);
    return span;
}

/* A span for a block of these bytes, with its record. */
static char *place(unsigned region, size_t bytes, size_t room, size_t alignment)
{
    if (bytes > space.bytes || room > space.bytes || alignment > space.bytes)
        return NULL;
    bytes += bytes == 0;
    bool staggers = alignment <= 64;
    uint32_t units = units_for(bytes + (staggers ? stagger_room(bytes) : 0));
    struct span span =
        take_of(region, units, units_for(room), alignment > UNIT ? (uint32_t)(alignment >> UNIT_SHIFT) : 1);
    if (!span.first)
        return NULL;
    uint32_t start = staggers ? stagger_at(span.first, bytes, (size_t)units << UNIT_SHIFT) : 0;
    struct unit *unit = &space.units[span.first];
    unit->count = span.count;
    unit->bytes = bytes;
    unit->offset = start;
    set_kind(unit, LARGE);
    return unit_start(span.first) + start;
}

void *large_take(unsigned region, size_t bytes, size_t alignment, bool *is_zero)
{
    char *block = place(region, bytes, 0, alignment);
    if (!block)
        return NULL;
    const struct unit *unit = unit_at(space_offset(block));
    *is_zero = dirty_count(unit_number(unit), unit->count) == 0;
    return block;
}

bool large_is(const void *block)
{
    size_t offset = space_offset(block);
    const struct unit *unit = unit_at(offset);
    return kind_of(unit) == LARGE && (offset & (UNIT - 1)) == unit->offset;
}

/* Gives a block back of whose span the first units have no pages any more. */
static void give(void *block, uint32_t moved)
{
    size_t offset = space_offset(block);
    struct unit *unit = unit_at(offset);
    uint8_t expected = LARGE;
    if ((offset & (UNIT - 1)) != unit->offset && kind_of(unit) != NOTHING)
        misuse("invalid free: no block begins at", block);
    if (!atomic_compare_exchange_strong(&unit->kind, &expected, WAS_LARGE))
        misuse(expected == NOTHING ? "invalid free: no block begins at" : "double free of the block", block);
    uint32_t first = unit_number(unit), count = unit->count;
    struct pool *pool = pool_of(first);
    if (moved < count)
        pool_give(pool, first + moved, count - moved, true);
    if (moved)
        pool_give(pool, first, moved, false);
}

void large_give(void *block)
{
    give(block, 0);
}

size_t large_usable(const void *block)
{
    const struct unit *unit = unit_at(space_offset(block));
    return unit->bytes;
}

/* Drops whole units at the end that the block no longer needs. */
static void shorten(struct unit *unit, size_t bytes)
{
    uint32_t needed = units_for(bytes + unit->offset), count = unit->count;
    unit->bytes = bytes;
    if (needed >= count)
        return;
    unit->count = needed;
    pool_give(pool_of(unit_number(unit)), unit_number(unit) + needed, count - needed, true);
}

/* Whether moving pages is cheaper than copying: they are many, and the new span has few. Pages keep their node, so spans of
 * other nodes are copied. */
static bool is_better_moved(const char *from, const char *to, size_t bytes, uint32_t units)
{
    size_t old = space_offset(from), new = space_offset(to);
    return bytes >= MOVED_FROM && region_of(old) == region_of(new) &&
           dirty_count(unit_number(unit_at(new)), units) < units / 2;
}

/* Moves the content to another span. `moved`: how many units of the old span have no pages any more. False if the new span can no
 * longer be used. */
static bool transfer(char *from, char *to, size_t bytes, uint32_t *moved)
{
    struct unit *old = unit_at(space_offset(from)), *new = unit_at(space_offset(to));
    uint32_t first = unit_number(new), units = units_for(bytes + old->offset);
    *moved = 0;
    if (is_better_moved(from, to, bytes, units)) {
        switch (os_move(unit_start(unit_number(old)), unit_start(first), (size_t)units << UNIT_SHIFT)) {
        case OS_MOVED:
            dirty_set(first, units);
            /* The block begins where it did in its span. */
            new->offset = old->offset;
            *moved = units;
            return true;
        case OS_LOST: return false;
        case OS_UNMOVED: pool_advise(pool_of(first), first, units);
        }
    }
    memcpy(to, from, bytes);
    return true;
}

static void *move(unsigned region, char *block, struct unit *unit, size_t bytes)
{
    size_t room = bytes >= ROOM_FROM ? bytes / 2 : 0, old = unit->bytes;
    char *other = place(region, bytes, room, 1);
    uint32_t moved;
    if (!other || !transfer(block, other, old < bytes ? old : bytes, &moved))
        return NULL;
    uint32_t first = unit_number(unit_at(space_offset(other)));
    give(block, moved);
    return unit_start(first) + space.units[first].offset;
}

void *large_resize(unsigned region, void *block, size_t bytes)
{
    struct unit *unit = unit_at(space_offset(block));
    uint32_t first = unit_number(unit);
    if (bytes > space.bytes)
        return NULL;
    uint32_t needed = units_for(bytes + unit->offset);
    if (bytes <= unit->bytes) {
        if (bytes < unit->bytes - unit->bytes / 4)
            shorten(unit, bytes);
        else
            unit->bytes = bytes;
        return block;
    }
    if (needed > unit->count) {
        if (!pool_extend(pool_of(first), first, unit->count, needed))
            return move(region, block, unit, bytes);
        unit->count = needed;
    }
    unit->bytes = bytes;
    return block;
}
