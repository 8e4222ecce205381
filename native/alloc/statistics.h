/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef ALLOC_STATISTICS_H
#define ALLOC_STATISTICS_H

#include "center.h"

/* Bytes and counts of a region. */
struct statistics {
    uint64_t mapped;     /* address space with memory or without */
    uint64_t live;       /* blocks that the program or a thread's lists have */
    uint64_t cached;     /* free memory that is kept */
    uint64_t reclaimable; /* of it, what the kernel may take */
    uint64_t from_other_nodes; /* blocks that threads of other nodes freed */
    uint64_t recycled;   /* bytes that were used again without a page fault */
};

struct statistics statistics_of(struct region *region);

/* One line for each region. */
void statistics_print(void);

#endif
