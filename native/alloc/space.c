/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "space.h"
#include "lock.h"

struct space space;

enum {
    LARGEST_REGION_SHIFT = 43,
    SMALLEST_REGION_SHIFT = 31,
    METADATA_SHIFT = 28,
    HUGE = 2 << 20,
    TRIES = 16,     /* of places, of which others may have taken some */
};

static struct {
    struct lock lock;
    char *at, *committed, *end;
} own;

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) & ~(to - 1);
}

/* The number of units that have their bits in one page. */
static uint32_t units_in_bits(void)
{
    return (uint32_t)os_page_bytes() * 8;
}

/* A place for all within the window, of which nothing is reserved: what a program may map, and what it set as a limit, is as
 * without this library. Behind the regions come the records, the bits and own data, with a gap before each. */
static bool settle(struct os_window window, size_t units)
{
    size_t gap = HUGE, records = round_up(units * sizeof(struct unit), gap), bits = round_up(units / 8, gap);
    size_t data = (size_t)1 << METADATA_SHIFT, all = space.bytes + records + bits + data + 4 * gap;
    if (all > window.bytes - window.bytes / 16)
        return false;
    for (int tries = 0; tries < TRIES; tries++) {
        char *base = (char *)round_up(window.from + os_random() % (window.bytes - all), HUGE);
        char *own_data = base + space.bytes + records + bits + 3 * gap;
        switch (os_map(own_data, UNIT)) {
        case OS_NO_MEMORY: return false;
        case OS_OCCUPIED: continue;
        case OS_MAPPED: break;
        }
        own.at = own_data;
        own.committed = own_data + UNIT;
        own.end = own_data + data;
        space.units = (struct unit *)(base + space.bytes + gap);
        space.dirty = (_Atomic uint64_t *)(base + space.bytes + records + 2 * gap);
        space.base = base;
        return true;
    }
    return false;
}

bool space_prepare(unsigned regions, unsigned nodes)
{
    struct os_window window = os_window();
    for (unsigned shift = LARGEST_REGION_SHIFT; shift >= SMALLEST_REGION_SHIFT; shift--) {
        space.bytes = (size_t)regions << shift;
        space.regions = regions;
        space.nodes = nodes;
        space.region_shift = shift;
        space.secret = os_secret(0);
        space.seal = os_secret(1);
        /* Pools begin at quarters of a region, and share no page of a table. */
        bool is_apart = ((UINT32_C(1) << (shift - UNIT_SHIFT)) / 4) % units_in_bits() == 0;
        if (is_apart && space.bytes <= window.bytes && settle(window, space.bytes >> UNIT_SHIFT))
            return true;
    }
    return false;
}

/* The pages of a table with this many units in each that have units of a range. The page that has the one before the range too
 * is usable, unless the table `begins` here. */
struct pages {
    char *from;
    size_t bytes;
};
static struct pages pages_of(void *table, uint32_t units, uint32_t from, uint32_t to, bool begins)
{
    size_t page = os_page_bytes(), first = begins ? from / units : (from + units - 1) / units;
    size_t end = ((size_t)to + units - 1) / units;
    return (struct pages){(char *)table + first * page, end > first ? (end - first) * page : 0};
}

static enum os_mapped map_pages(struct pages pages)
{
    return pages.bytes ? os_map(pages.from, pages.bytes) : OS_MAPPED;
}

enum os_mapped space_record(uint32_t from, uint32_t to, bool begins)
{
    uint32_t in_records = (uint32_t)(os_page_bytes() / sizeof(struct unit));
    struct pages records = pages_of(space.units, in_records, from, to, begins);
    enum os_mapped mapped = map_pages(records);
    if (mapped != OS_MAPPED)
        return mapped;
    mapped = map_pages(pages_of(space.dirty, units_in_bits(), from, to, begins));
    /* If they stay, these addresses are occupied the next time. */
    if (mapped != OS_MAPPED && records.bytes)
        (void)os_unmap(records.from, records.bytes);
    return mapped;
}

uint32_t space_apart(void)
{
    return 2 * units_in_bits();
}

enum os_mapped space_map(uint32_t first, uint32_t count)
{
    return os_map(unit_start(first), (size_t)count << UNIT_SHIFT);
}

bool space_unmap(uint32_t first, uint32_t count)
{
    return os_unmap(unit_start(first), (size_t)count << UNIT_SHIFT);
}

void *space_metadata(size_t bytes)
{
    bytes = round_up(bytes, 64);
    lock(&own.lock);
    char *memory = own.at;
    if ((size_t)(own.end - memory) < bytes) {
        memory = NULL;
    } else if (memory + bytes > own.committed) {
        size_t more = round_up((size_t)(memory + bytes - own.committed), UNIT);
        if (more > (size_t)(own.end - own.committed) || os_map(own.committed, more) != OS_MAPPED)
            memory = NULL;
        else
            own.committed += more;
    }
    if (memory)
        own.at = memory + bytes;
    unlock(&own.lock);
    return memory;
}

void space_lock(void)
{
    lock(&own.lock);
}

void space_unlock(void)
{
    unlock(&own.lock);
}

/* The bits of one word that belong to a range which begins at `first`; advances it. */
static uint64_t bits_of(uint32_t *first, uint32_t end, uint32_t *word)
{
    uint32_t low = *first % 64, high = end - (*first - low);
    *word = *first / 64;
    *first = *first - low + 64;
    uint64_t below = high >= 64 ? UINT64_MAX : (UINT64_C(1) << high) - 1;
    return below & (UINT64_MAX << low);
}

void dirty_set(uint32_t first, uint32_t count)
{
    for (uint32_t end = first + count, word; first < end;) {
        uint64_t bits = bits_of(&first, end, &word);
        atomic_fetch_or_explicit(&space.dirty[word], bits, memory_order_relaxed);
    }
}

void dirty_clear(uint32_t first, uint32_t count)
{
    for (uint32_t end = first + count, word; first < end;) {
        uint64_t bits = bits_of(&first, end, &word);
        atomic_fetch_and_explicit(&space.dirty[word], ~bits, memory_order_relaxed);
    }
}

uint32_t dirty_count(uint32_t first, uint32_t count)
{
    uint32_t dirty = 0;
    for (uint32_t end = first + count, word; first < end;) {
        uint64_t bits = bits_of(&first, end, &word);
        uint64_t all = atomic_load_explicit(&space.dirty[word], memory_order_relaxed);
        dirty += (uint32_t)__builtin_popcountll(all & bits);
    }
    return dirty;
}

bool dirty_is(uint32_t unit)
{
    return dirty_count(unit, 1) != 0;
}
