/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "touch.h"
#include <errno.h>

/* Writes what is there: a page may have content. */
static void touch(uintptr_t from, uintptr_t to, size_t step)
{
    for (uintptr_t at = from; at < to; at += step)
        atomic_fetch_add_explicit((_Atomic unsigned char *)at, 0, memory_order_relaxed);
}

static int go_to(uint16_t node)
{
    struct cpus one = {{0}};
    uint32_t cpu = cure.cpu[node];
    if (!(cure.used.bits[node / 64] >> node % 64 & 1))
        return EINVAL;
    one.bits[cpu / 64] = 1UL << cpu % 64;
    return os_set_mask(&one);
}

/* Page by page from all nodes in turn. */
static int touch_in_turn(uintptr_t from, uintptr_t to)
{
    size_t page = cure.page_bytes, count = cure.used_count;
    for (size_t i = 0; i < count && from + i * page < to; i++) {
        int error = go_to(cure.used_node[i]);
        if (error)
            return error;
        touch(from + i * page, to, count * page);
    }
    return 0;
}

static int touch_runs(const struct run *runs, size_t count)
{
    uint16_t here = NO_NODE;
    for (size_t i = 0; i < count; i++) {
        int error = runs[i].node == here || runs[i].node == NO_NODE ? 0 : go_to(runs[i].node);
        if (error)
            return error;
        if (runs[i].node == NO_NODE)
            continue;
        here = runs[i].node;
        touch(runs[i].from, runs[i].to, cure.page_bytes);
    }
    return 0;
}

static int touch_all(const struct object *object, uintptr_t from, size_t bytes, uint16_t node)
{
    struct run runs[FRACTIONS];
    size_t page = cure.page_bytes, count = 1;
    size_t more = object->kind == OF_BLOCKS ? page - 1 : 0;
    uintptr_t first = (from + page - 1) / page * page, end = (from + bytes + more) / page * page;
    if (object->policy == AS_INTERLEAVED || object->policy == AS_WEIGHTED)
        return touch_in_turn(first, end);
    if (node == ANY_NODE)
        count = runs_of(object, from, bytes, runs);
    else
        runs[0] = (struct run){first, end, node};
    /* The nearer page may be a neighbour's, which need not be memory. */
    for (size_t i = 0; i < count; i++) {
        runs[i].from = runs[i].from < first ? first : runs[i].from;
        runs[i].to = runs[i].to > end ? end : runs[i].to;
    }
    return touch_runs(runs, count);
}

int touch_from_nodes(struct object *object, uintptr_t from, size_t bytes, uint16_t node)
{
    struct cpus before;
    if (bytes > os_free_memory() / 2)
        return ENOMEM;
    int error = os_mask(&before);
    if (error)
        return error;
    error = touch_all(object, from, bytes, node);
    os_set_mask(&before);
    if (!error)
        count_up(&object->told->touched, 1);
    return error;
}
