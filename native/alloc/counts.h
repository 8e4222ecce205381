/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The counts of the library, in one table that `numa alloc --pid` reads in the memory of a running process: another layout is
 * another version. A count is written under the lock of its pool or inbox, where it changes. A reader without the lock gets
 * each count whole, but several may be from different moments. */
#ifndef ALLOC_COUNTS_H
#define ALLOC_COUNTS_H

#include "names.h"
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COUNTS_VERSION = 3, NODE_REGIONS = 256, MOST_REGIONS = NODE_REGIONS + 1 };

/* Units. */
struct pool_counts {
    uint64_t mapped;    /* address space that was made usable */
    uint64_t taken;     /* in use */
    uint64_t kept;      /* free, and may have pages */
    uint64_t offered;   /* of them those that the kernel may take */
    uint64_t recycled;  /* taken when they had pages, since the start */
} __attribute__((aligned(64)));

struct region_counts {
    struct pool_counts small, large;
    uint64_t received; /* blocks that threads of other nodes freed, since the start */
} __attribute__((aligned(64)));

struct counts {
    char magic[8];      /* "NUMALLOC" when the other fields are valid */
    uint32_t version;
    uint32_t regions;   /* of nodes, or one */
    uint32_t region_bytes; /* from one to the next */
    uint32_t unit_bytes;
    uint32_t page_bytes;
    uint32_t of_nodes;  /* 1: a region for each node; 0: one for the whole machine */
    uint64_t address;   /* of the first region */
    uint64_t address_bytes; /* from one to the next */
    uint32_t of_policies; /* 1: one more region behind those, whose memory lies by the policies of the program */
    struct region_counts region[MOST_REGIONS];
};

static_assert(sizeof(struct region_counts) == 192 && offsetof(struct region_counts, large) == 64 &&
                  offsetof(struct region_counts, received) == 128 && offsetof(struct counts, region) == 64,
              "another layout is another version");

extern EXPORT struct counts numalloc_counts;

/* Called once, when the regions are known. */
void counts_begin(unsigned regions, bool of_policies, bool of_nodes);

#endif
