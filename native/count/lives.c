/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "lives.h"
#include "os.h"
#include <stdatomic.h>
#include <sys/mman.h>

enum {
    BUCKET = 8,                   /* keys in a line of the cache */
    BUCKET_BITS = 13,
    BUCKETS = 1 << BUCKET_BITS,
    ENTRIES = BUCKETS * BUCKET,
    MANY = ENTRIES / 4,
};

struct table {
    _Atomic uintptr_t keys[ENTRIES]; /* the block; 0: free; 1: an entry is being written */
    struct life lives[ENTRIES];
};

static struct table *table;
static _Atomic long living;

size_t lives_begin(void)
{
    table = os_allocate(sizeof *table, MAP_POPULATE);
    return table ? sizeof *table : 0;
}

static size_t bucket_of(const void *block)
{
    return (size_t)(((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BUCKET_BITS)) * BUCKET;
}

bool lives_add(void *block, struct life life)
{
    if (!table)
        return false;
    for (size_t at = bucket_of(block), end = at + BUCKET; at < end; at++) {
        uintptr_t free = 0;
        if (!atomic_compare_exchange_strong_explicit(&table->keys[at], &free, 1, memory_order_acquire,
                                                     memory_order_relaxed))
            continue;
        table->lives[at] = life;
        atomic_store_explicit(&table->keys[at], (uintptr_t)block, memory_order_release);
        atomic_fetch_add_explicit(&living, 1, memory_order_relaxed);
        return true;
    }
    return false;
}

bool lives_end(void *block, struct life *life)
{
    if (!table)
        return false;
    for (size_t at = bucket_of(block), end = at + BUCKET; at < end; at++) {
        if (atomic_load_explicit(&table->keys[at], memory_order_acquire) != (uintptr_t)block)
            continue;
        *life = table->lives[at];
        atomic_store_explicit(&table->keys[at], 0, memory_order_release);
        atomic_fetch_sub_explicit(&living, 1, memory_order_relaxed);
        return true;
    }
    return false;
}

bool lives_are_many(void)
{
    return atomic_load_explicit(&living, memory_order_relaxed) > MANY;
}
