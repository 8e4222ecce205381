/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "space.h"
#include "lock.h"

struct space space;

enum {
    LARGEST_TOTAL_SHIFT = 46, /* 64 TiB of the 128 that x86-64 has */
    SMALLEST_TOTAL_SHIFT = 25,
    LARGEST_REGION_SHIFT = 43,
    METADATA_SHIFT = 28,
    HUGE = 2 << 20,
};

static struct {
    struct lock lock;
    char *at, *committed, *end;
} own;

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) & ~(to - 1);
}

/* Records, bits and own data of a space, with a page on each side that nobody can touch. */
static bool reserve_metadata(size_t units)
{
    size_t page = os_page_bytes(), gap = round_up(page, UNIT);
    size_t records = round_up(units * sizeof(struct unit), gap), bits = round_up(units / 8, gap);
    size_t data = (size_t)1 << METADATA_SHIFT;
    if (data > space.bytes / 8)
        data = round_up(space.bytes / 8, gap);
    char *all = os_reserve(records + bits + data + 4 * gap, gap);
    if (!all)
        return false;
    space.units = (struct unit *)(all + gap);
    space.dirty = (_Atomic uint64_t *)(all + 2 * gap + records);
    own.at = own.committed = all + 3 * gap + records + bits;
    own.end = own.at + data;
    return true;
}

bool space_prepare(unsigned regions)
{
    unsigned region_bits = 0;
    while (1u << region_bits < regions)
        region_bits++;
    size_t limit = os_address_limit();
    for (unsigned shift = LARGEST_TOTAL_SHIFT; shift >= SMALLEST_TOTAL_SHIFT; shift--) {
        unsigned region_shift = shift - region_bits;
        if (region_shift > LARGEST_REGION_SHIFT)
            region_shift = LARGEST_REGION_SHIFT;
        size_t bytes = (size_t)regions << region_shift;
        if (bytes > limit / 2 || region_shift < UNIT_SHIFT + 4)
            continue;
        char *base = os_reserve(bytes, HUGE);
        if (!base)
            continue;
        space.bytes = bytes;
        if (!reserve_metadata(bytes >> UNIT_SHIFT))
            return false;
        space.regions = regions;
        space.region_shift = region_shift;
        space.secret = os_secret(0);
        space.seal = os_secret(1);
        space.base = base;
        return true;
    }
    return false;
}

/* Commits the pages that have a byte of this range. */
static bool commit_pages(const void *first, const void *end)
{
    uintptr_t page = os_page_bytes(), from = (uintptr_t)first & ~(page - 1);
    return os_commit((void *)from, round_up((uintptr_t)end, page) - from);
}

bool space_commit(uint32_t first, uint32_t count)
{
    return commit_pages(&space.units[first], &space.units[first + count]) &&
           commit_pages(&space.dirty[first / 64], &space.dirty[(first + count - 1) / 64 + 1]) &&
           os_commit(unit_start(first), (size_t)count << UNIT_SHIFT);
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
        if (more > (size_t)(own.end - own.committed) || !os_commit(own.committed, more))
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
