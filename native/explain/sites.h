/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The code that allocated the small blocks of some pages: a table in this process's memory, which the observer reads when a
 * sample has an address in the heap. The pages are one in 16, and those with which the heap and glibc's arenas begin, since a
 * program with few blocks has no others. crates/sys/src/allocation_log/sites.rs has the same layout. */
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

enum { FIRST_PAGES = 128, ARENA_PAGES = (64 << 20) >> SITE_PAGE_BITS, FIRST_OF_ARENA = 16 };

/* The first page of the heap, or somewhat before it. */
extern uint64_t sites_first_page __attribute__((visibility("hidden")));

/* Whether the block begins in a page that has entries. */
static inline bool sites_may_have(const void *block)
{
    uint64_t page = (uint64_t)(uintptr_t)block >> SITE_PAGE_BITS;
    bool is_chosen = sites_mixed(block) >> (64 - SITE_PAGES_BITS) == 0;
    return __builtin_expect(is_chosen || page - sites_first_page < FIRST_PAGES || page % ARENA_PAGES < FIRST_OF_ARENA, 0);
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
