/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "blocks.h"
#include "os.h"

/* A block is in one of two buckets of a cache line each. */
enum { BUCKETS = 1 << 17, IN_BUCKET = 8 };

typedef _Atomic uintptr_t bucket[IN_BUCKET];

_Atomic uint32_t blocks_filter[FILTER_SIZE];
static bucket *buckets;

bool blocks_begin(void)
{
    if (!buckets)
        buckets = os_allocate(BUCKETS * sizeof *buckets, 0);
    return buckets;
}

static bucket *bucket_of(const void *block, int choice)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    return &buckets[(choice ? mixed >> 20 : mixed >> 44) % BUCKETS];
}

bool blocks_add(const void *block)
{
    for (int choice = 0; choice < 2; choice++) {
        bucket *place = bucket_of(block, choice);
        for (int i = 0; i < IN_BUCKET; i++) {
            uintptr_t free = 0;
            if (atomic_load_explicit(&(*place)[i], memory_order_relaxed) == 0 &&
                atomic_compare_exchange_strong(&(*place)[i], &free, (uintptr_t)block)) {
                atomic_fetch_add(blocks_place(block), 1);
                return true;
            }
        }
    }
    return false;
}

bool blocks_remove(const void *block)
{
    /* NULL is the address of free places. */
    for (int choice = 0; block && buckets && choice < 2; choice++) {
        bucket *place = bucket_of(block, choice);
        for (int i = 0; i < IN_BUCKET; i++) {
            uintptr_t wanted = (uintptr_t)block;
            if (atomic_load_explicit(&(*place)[i], memory_order_relaxed) == wanted &&
                atomic_compare_exchange_strong(&(*place)[i], &wanted, 0)) {
                atomic_fetch_sub(blocks_place(block), 1);
                return true;
            }
        }
    }
    return false;
}
