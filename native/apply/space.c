/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "space.h"
#include <string.h>
#include <sys/auxv.h>

enum { GRANULE = 1 << GRANULE_BITS, TRIES = 64, AT_ONCE = 64 << 10 };

uintptr_t space_low;
size_t space_bytes;
struct span **_Atomic *space_tops;

static struct lock addresses, records;
static uintptr_t next_address;
static struct span *free_records;
static size_t most_mappings;
static atomic_size_t mappings_now;

/* The window of libnumalloc begins at a quarter of what a process can address; this one is below. */
void space_begin(void)
{
    uintptr_t stack = (uintptr_t)__builtin_frame_address(0), top = 1, random = 0;
    while (top <= stack)
        top *= 2;
    size_t bytes = top / 16, leaf = (size_t)GRANULE << LEAF_BITS;
    void *tops = os_allocate((bytes + leaf - 1) / leaf * sizeof *space_tops, 0);
    if (!tops)
        return;
    const void *bytes_of_kernel = (const void *)getauxval(AT_RANDOM);
    if (bytes_of_kernel)
        memcpy(&random, bytes_of_kernel, sizeof random);
    most_mappings = os_most_mappings() / 2;
    space_tops = tops;
    space_low = top / 16 * 3;
    next_address = space_low + random % (bytes / 2);
    space_bytes = bytes;
}

void space_lock(void (*function)(struct lock *))
{
    function(&addresses);
    function(&records);
}

bool space_may_map(size_t mappings)
{
    if (atomic_fetch_add(&mappings_now, mappings) + mappings <= most_mappings)
        return true;
    atomic_fetch_sub(&mappings_now, mappings);
    count_up(&cure.table->header.mappings_exhausted, 1);
    return false;
}

void space_has_unmapped(size_t mappings)
{
    atomic_fetch_sub(&mappings_now, mappings);
}

static struct span *record_take(void)
{
    lock(&records);
    if (!free_records) {
        struct span *more = os_allocate(AT_ONCE, 0);
        for (size_t i = 0; more && i < AT_ONCE / sizeof *more; i++) {
            more[i].next = free_records;
            free_records = &more[i];
        }
    }
    struct span *record = free_records;
    if (record)
        free_records = record->next;
    unlock(&records);
    if (record)
        memset(record, 0, sizeof *record);
    return record;
}

static void record_give(struct span *record)
{
    lock(&records);
    record->next = free_records;
    free_records = record;
    unlock(&records);
}

static struct span **leaf_of(size_t top)
{
    struct span **leaf = atomic_load(&space_tops[top]), **fresh;
    if (leaf)
        return leaf;
    fresh = os_allocate(LEAF_SPANS * sizeof *fresh, 0);
    if (!fresh || atomic_compare_exchange_strong(&space_tops[top], &leaf, fresh))
        return fresh;
    os_unmap(fresh, LEAF_SPANS * sizeof *fresh);
    return leaf;
}

/* All addresses of a span lead to it. */
static bool enter(uintptr_t from, size_t bytes, struct span *span)
{
    size_t first = (from - space_low) >> GRANULE_BITS, count = (bytes + GRANULE - 1) >> GRANULE_BITS;
    for (size_t i = first; i < first + count; i++) {
        struct span **leaf = leaf_of(i >> LEAF_BITS);
        if (!leaf)
            return false;
        __atomic_store_n(&leaf[i % LEAF_SPANS], span, __ATOMIC_RELEASE);
    }
    return true;
}

/* The address behind the last span; from the beginning once more at the end. */
static uintptr_t next_place(size_t bytes, size_t alignment)
{
    lock(&addresses);
    uintptr_t at = (next_address + alignment - 1) / alignment * alignment;
    if (at + bytes > space_low + space_bytes)
        at = (space_low + alignment - 1) / alignment * alignment;
    next_address = (at + bytes + GRANULE - 1) / GRANULE * GRANULE;
    unlock(&addresses);
    return at;
}

static uintptr_t map(size_t bytes, size_t alignment)
{
    for (int i = 0; i < TRIES; i++) {
        bool is_taken;
        uintptr_t at = next_place(bytes, alignment);
        if (os_map_at(at, bytes, &is_taken))
            return at;
        if (!is_taken)
            return 0;
    }
    return 0;
}

struct span *space_take(size_t bytes, size_t alignment, size_t mappings)
{
    alignment = alignment < GRANULE ? GRANULE : alignment;
    if (bytes > space_bytes / 8 || alignment > space_bytes / 8 || !space_may_map(mappings))
        return NULL;
    struct span *span = record_take();
    uintptr_t at = span ? map(bytes, alignment) : 0;
    if (at && !enter(at, bytes, span)) {
        os_unmap((void *)at, bytes);
        at = 0;
    }
    if (!at) {
        space_has_unmapped(mappings);
        if (span)
            record_give(span);
        return NULL;
    }
    span->from = at;
    span->bytes = bytes;
    span->node = ANY_NODE;
    span->mappings = mappings;
    return span;
}

void space_give(struct span *span)
{
    enter(span->from, span->bytes, NULL);
    os_unmap((void *)span->from, span->bytes);
    space_has_unmapped(span->mappings);
    record_give(span);
}

void space_tear(const void *address)
{
    struct span *span = space_may_have(address) ? space_span(address) : NULL;
    if (span)
        span->is_torn = true;
}
