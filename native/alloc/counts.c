/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "counts.h"
#include "space.h"
#include <string.h>

struct counts numalloc_counts;

void counts_begin(unsigned regions, bool of_policies, bool of_nodes)
{
    numalloc_counts.version = COUNTS_VERSION;
    numalloc_counts.regions = regions;
    numalloc_counts.region_bytes = sizeof(struct region_counts);
    numalloc_counts.unit_bytes = UNIT;
    numalloc_counts.page_bytes = (uint32_t)os_page_bytes();
    numalloc_counts.of_nodes = of_nodes;
    numalloc_counts.of_policies = of_policies;
    numalloc_counts.address = (uintptr_t)space.base;
    numalloc_counts.address_bytes = UINT64_C(1) << space.region_shift;
    atomic_thread_fence(memory_order_release);
    memcpy(numalloc_counts.magic, "NUMALLOC", sizeof numalloc_counts.magic);
}
