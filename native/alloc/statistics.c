/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "statistics.h"
#include "names.h"
#include <malloc.h>

static void add_pool(struct statistics *sum, struct pool *pool)
{
    lock(&pool->lock);
    sum->mapped += pool->counts->mapped << UNIT_SHIFT;
    sum->cached += pool->counts->kept << UNIT_SHIFT;
    sum->reclaimable += pool->counts->offered << UNIT_SHIFT;
    sum->recycled += pool->counts->recycled << UNIT_SHIFT;
    sum->live += pool->counts->taken << UNIT_SHIFT;
    unlock(&pool->lock);
}

struct statistics statistics_of(struct region *region)
{
    struct statistics sum = {0};
    add_pool(&sum, &region->small);
    add_pool(&sum, &region->large);
    lock(&region->inbox.lock);
    sum.from_other_nodes = *region->inbox.received;
    unlock(&region->inbox.lock);
    return sum;
}

/* Where the pages of the regions of nodes lie. */
struct pages {
    uint64_t local[MOST_REGIONS], spilled[MOST_REGIONS];
};

static void add_pages(void *context, uintptr_t mapping, unsigned node, uint64_t bytes)
{
    struct pages *pages = context;
    size_t offset = space_offset((const void *)mapping);
    if (!space_has(offset))
        return;
    unsigned region = region_of(offset);
    if (region < numalloc_counts.regions) {
        uint64_t *sum = region == node ? pages->local : pages->spilled;
        sum[region] += bytes;
    }
}

static void say_kib(struct line *line, const char *name, uint64_t bytes)
{
    say(line, name);
    say_number(line, bytes >> 10);
    say(line, " KiB");
}

void statistics_print(void)
{
    static struct pages pages;
    bool of_nodes = numalloc_counts.of_nodes, has_pages = of_nodes && os_pages(add_pages, &pages);
    for (unsigned i = 0; i < space.regions; i++) {
        struct statistics sum = statistics_of(&regions[i]);
        struct line line = {0};
        bool of_policies = i == numalloc_counts.regions;
        if (of_policies && sum.mapped == 0)
            continue;
        say(&line, of_policies ? "memory policies of the program" : "node ");
        if (!of_policies)
            say_number(&line, i);
        say_kib(&line, ": mapped ", sum.mapped);
        say_kib(&line, ", live ", sum.live);
        say_kib(&line, ", cached ", sum.cached);
        say_kib(&line, ", reclaimable ", sum.reclaimable);
        say_kib(&line, ", recycled ", sum.recycled);
        say(&line, ", page faults avoided ");
        say_number(&line, sum.recycled / os_page_bytes());
        say(&line, ", blocks from other nodes ");
        say_number(&line, sum.from_other_nodes);
        if (has_pages && !of_policies) {
            say_kib(&line, ", local ", pages.local[i]);
            say_kib(&line, ", spilled ", pages.spilled[i]);
        } else if (of_nodes && !of_policies) {
            say(&line, ", spilled unknown: /proc/self/numa_maps cannot be read");
        }
        line_print(&line);
    }
}

EXPORT struct mallinfo2 NAME(mallinfo2)(void)
{
    struct mallinfo2 info = {0};
    for (unsigned i = 0; regions && i < space.regions; i++) {
        struct statistics sum = statistics_of(&regions[i]);
        info.arena += sum.live + sum.cached;
        info.uordblks += sum.live;
        info.fordblks += sum.cached;
        info.keepcost += sum.cached;
    }
    return info;
}
