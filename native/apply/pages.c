/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pages.h"

/* Of the pages that were added, each kept_step-th. */
static void *kept[FRACTIONS];
static size_t kept_count, kept_step = 1, added;

static void *page_of(uintptr_t address)
{
    return (void *)(address / cure.page_bytes * cure.page_bytes);
}

/* Pages that are not there are not counted. */
static void count_nodes(struct object *object, void **pages, size_t count)
{
    int nodes[FRACTIONS];
    if (count == 0 || is_filtered() || !os_nodes_of(pages, count, nodes))
        return;
    for (size_t i = 0; i < count; i++)
        if (nodes[i] >= 0)
            count_up(&object->told->pages_on[nodes[i] < COUNTED_NODES ? nodes[i] : COUNTED_NODES - 1], 1);
}

/* A page of each fraction, or all if there are fewer. Which one looks like chance: steps of one length would be on one node where pages are
 * interleaved over as many. */
static size_t pages_of(uintptr_t from, size_t bytes, void *pages[FRACTIONS])
{
    size_t count = 0, each = bytes / FRACTIONS, choices = each / cure.page_bytes;
    for (size_t i = 0; i < FRACTIONS; i++) {
        size_t chance = (size_t)((uint32_t)(i + 1) * 2654435769u >> 12);
        size_t within = choices > 1 ? chance % choices * cure.page_bytes : each / 2;
        void *page = page_of(from + each * i + within);
        if (count == 0 || pages[count - 1] != page)
            pages[count++] = page;
    }
    return count;
}

void pages_count(struct object *object, uintptr_t from, size_t bytes)
{
    void *pages[FRACTIONS];
    count_nodes(object, pages, pages_of(from, bytes, pages));
}

void pages_add(uintptr_t from, size_t bytes)
{
    void *pages[FRACTIONS];
    size_t count = pages_of(from, bytes, pages);
    for (size_t i = 0; i < count; i++) {
        if (added++ % kept_step)
            continue;
        if (kept_count == FRACTIONS) {
            kept_count /= 2;
            kept_step *= 2;
            for (size_t at = 0; at < kept_count; at++)
                kept[at] = kept[2 * at];
            if ((added - 1) % kept_step)
                continue;
        }
        kept[kept_count++] = pages[i];
    }
}

void pages_ask(struct object *object)
{
    count_nodes(object, kept, kept_count);
    kept_count = added = 0;
    kept_step = 1;
}
