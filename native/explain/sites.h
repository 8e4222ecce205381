/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The code that allocated the small blocks of some pages, one page in SITE_PAGES: a table in this process's memory, which the
 * observer reads when a sample has an address in such a page. crates/sys/src/allocation_log/sites.rs has the same layout. */
#ifndef SITES_H
#define SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SITE_PAGE_BITS = 12,
    SITE_PAGES_BITS = 4,      /* one page in 16 */
    SITE_SLOT_BITS = 15,      /* pages of the table: those of 2 GiB of small blocks */
    SITE_GRANULE_BITS = 4,    /* a block has an entry where it begins, by 16 bytes */
    SITE_SIZE_BITS = 16,      /* of an entry; the rest is the address behind the call */
};

/* The numbers of pages of all slots, 0 if free; then their entries. */
enum {
    SITE_SLOTS = 1 << SITE_SLOT_BITS,
    SITE_ENTRIES = 1 << (SITE_PAGE_BITS - SITE_GRANULE_BITS),
    SITE_BYTES = SITE_SLOTS * 8 + SITE_SLOTS * SITE_ENTRIES * 8,
};

static inline uint64_t sites_mixed(const void *block)
{
    return ((uint64_t)(uintptr_t)block >> SITE_PAGE_BITS) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Whether the block begins in a page that has entries. */
static inline bool sites_may_have(const void *block)
{
    return __builtin_expect(sites_mixed(block) >> (64 - SITE_PAGES_BITS) == 0, 0);
}

/* The address of the table; NULL without memory for it. Called while no other thread allocates. */
void *sites_begin(void);
/* True if the call with this frame is the one by which sites_begin finds out what the frame of C++'s `new` is. */
bool sites_measure(const void *frame);

/* The function of this library with this frame has allocated the block. */
void sites_add(const void *block, size_t size, const void *frame);
/* The block will be freed. */
void sites_remove(const void *block);

#endif
