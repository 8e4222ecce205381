/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "large.h"
#include "pages.h"
#include "policy.h"

enum { BUCKETS = 64, HUGE_BYTES = 2 << 20, KEPT_BYTES = 64 << 20, KEPT_PART = 8, SAMPLED = 1024, AT_ONCE = 64 };

/* Of an object. */
static struct shelf {
    _Alignas(64) struct lock lock;
    struct span *used, *kept[BUCKETS];
    size_t kept_bytes, used_bytes, most_used;
    unsigned evicted;                     /* the bucket of which one was unmapped last */
    uint64_t given, blocks, bytes;        /* all, and those that are not told yet */
} shelves[MAX_OBJECTS];

static struct shelf *shelf_of(const struct object *object)
{
    return &shelves[object - cure.object];
}

static unsigned bucket_of(size_t bytes, uint16_t node)
{
    return (unsigned)((bytes / cure.page_bytes * 131 + node) * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

static void link_into(struct span **list, struct span *span)
{
    span->previous = NULL;
    span->next = *list;
    if (*list)
        (*list)->previous = span;
    *list = span;
}

static void unlink_from(struct span **list, struct span *span)
{
    if (span->previous)
        span->previous->next = span->next;
    else
        *list = span->next;
    if (span->next)
        span->next->previous = span->previous;
}

static struct span *take_kept(struct shelf *shelf, size_t bytes, size_t alignment, uint16_t node)
{
    struct span **list = &shelf->kept[bucket_of(bytes, node)], *span = *list;
    while (span && (span->bytes != bytes || span->node != node || span->from % alignment))
        span = span->next;
    if (span) {
        unlink_from(list, span);
        shelf->kept_bytes -= bytes;
    }
    return span;
}

static struct span *make(struct object *object, size_t size, size_t bytes, size_t alignment, uint16_t node)
{
    size_t part = bytes / object->parts;
    if (bytes >= HUGE_BYTES && object->pages != PAGES_SMALL && (object->pages == PAGES_HUGE || part >= HUGE_BYTES))
        alignment = alignment < HUGE_BYTES ? HUGE_BYTES : alignment;
    if (!policy_can_be_set(object))
        return NULL;
    struct span *span = space_take(bytes, alignment, policy_mappings(object));
    if (!span)
        return NULL;
    span->object = object;
    span->node = node;
    span->usable = bytes;
    span->is_fresh = true;
    if (policy_set(object, span->from, size ? size : bytes, node, false))
        return span;
    space_give(span);
    return NULL;
}

/* What is told is not all: to tell costs as much as the block. */
static void note_given(struct shelf *shelf, struct object *object, size_t size)
{
    shelf->blocks++;
    shelf->bytes += size;
    shelf->given++;
    if (shelf->given > AT_ONCE && shelf->given % AT_ONCE)
        return;
    policy_count(object, shelf->blocks, shelf->bytes);
    shelf->blocks = shelf->bytes = 0;
}

void *large_new(struct object *object, size_t size, size_t alignment, uint16_t node, bool *is_zero)
{
    struct shelf *shelf = shelf_of(object);
    size_t bytes = (size + cure.page_bytes - 1) / cure.page_bytes * cure.page_bytes;
    bytes = bytes ? bytes : cure.page_bytes;
    alignment = alignment ? alignment : 1;
    lock(&shelf->lock);
    struct span *span = take_kept(shelf, bytes, alignment, node);
    unlock(&shelf->lock);
    if (!span)
        span = make(object, size, bytes, alignment, node);
    if (!span)
        return NULL;
    *is_zero = span->is_fresh;
    span->is_fresh = false;
    lock(&shelf->lock);
    link_into(&shelf->used, span);
    shelf->used_bytes += bytes;
    shelf->most_used = shelf->used_bytes > shelf->most_used ? shelf->used_bytes : shelf->most_used;
    note_given(shelf, object, size);
    unlock(&shelf->lock);
    return (void *)span->from;
}

/* A kept one that is over the limit, or NULL. */
static struct span *evict(struct shelf *shelf)
{
    size_t limit = shelf->most_used / KEPT_PART > KEPT_BYTES ? shelf->most_used / KEPT_PART : KEPT_BYTES;
    if (shelf->kept_bytes <= limit || is_filtered())
        return NULL;
    for (unsigned i = 1; i <= BUCKETS; i++) {
        struct span **list = &shelf->kept[(shelf->evicted + i) % BUCKETS], *span = *list;
        if (!span)
            continue;
        shelf->evicted = (shelf->evicted + i) % BUCKETS;
        unlink_from(list, span);
        shelf->kept_bytes -= span->bytes;
        return span;
    }
    return NULL;
}

void large_free(struct span *span)
{
    struct shelf *shelf = shelf_of(span->object);
    pages_sample_freed(span->object, span->from, span->bytes);
    lock(&shelf->lock);
    unlink_from(&shelf->used, span);
    shelf->used_bytes -= span->bytes;
    if (RARELY(span->is_torn)) {
        unlock(&shelf->lock);
        space_give(span);
        return;
    }
    link_into(&shelf->kept[bucket_of(span->bytes, span->node)], span);
    shelf->kept_bytes += span->bytes;
    struct span *over;
    while (RARELY((over = evict(shelf)))) {
        unlock(&shelf->lock);
        space_give(over);
        lock(&shelf->lock);
    }
    unlock(&shelf->lock);
}

void large_sample(struct object *object)
{
    struct shelf *shelf = shelf_of(object);
    if (!lock_briefly(&shelf->lock))
        return;
    if (shelf->blocks)
        policy_count(object, shelf->blocks, shelf->bytes);
    shelf->blocks = shelf->bytes = 0;
    int left = SAMPLED;
    for (struct span *span = shelf->used; span && left > 0; span = span->next, left--)
        pages_add(span->from, span->bytes);
    unlock(&shelf->lock);
}

void large_forget(void)
{
    for (size_t i = 0; i < cure.object_count; i++)
        shelves[i].blocks = shelves[i].bytes = 0;
}

void large_lock(void (*function)(struct lock *))
{
    for (size_t i = 0; i < cure.object_count; i++)
        function(&shelves[i].lock);
}
