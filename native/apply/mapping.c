/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "mapping.h"
#include "base/calls.h"
#include "functions.h"
#include "modules.h"
#include "pages.h"
#include "policy.h"
#include "sanitized.h"
#include "sites.h"
#include "space.h"
#include <errno.h>
#include <sys/mman.h>

#define FRAME __builtin_frame_address(0)

enum { MAX_MAPPINGS = 1024 };

/* Mappings of objects, as many as are remembered; without bytes it is free. */
static struct mapping {
    uintptr_t from;
    size_t bytes;
    struct object *object;
} mappings[MAX_MAPPINGS];

static struct lock lock_of_mappings;
static size_t last;                              /* behind the last that is used */
static _Atomic uintptr_t lowest = UINTPTR_MAX, highest;

static bool may_overlap(uintptr_t from, size_t bytes)
{
    return from < atomic_load_explicit(&highest, memory_order_relaxed) &&
           from + bytes > atomic_load_explicit(&lowest, memory_order_relaxed);
}

/* False if it cannot be remembered: then nobody would know when its mappings end. */
static bool remember(uintptr_t from, size_t bytes, struct object *object)
{
    size_t at = 0;
    lock(&lock_of_mappings);
    while (at < last && mappings[at].bytes)
        at++;
    bool has_place = at < MAX_MAPPINGS;
    if (has_place) {
        mappings[at] = (struct mapping){from, bytes, object};
        last = at + 1 > last ? at + 1 : last;
        if (from < lowest)
            atomic_store(&lowest, from);
        if (from + bytes > highest)
            atomic_store(&highest, from + bytes);
    }
    unlock(&lock_of_mappings);
    return has_place;
}

/* One of these addresses, with an object NULL if there is none. */
static struct mapping mapping_at(uintptr_t from, size_t bytes)
{
    struct mapping found = {0};
    if (!may_overlap(from, bytes))
        return found;
    lock(&lock_of_mappings);
    for (size_t i = 0; i < last && !found.object; i++)
        if (mappings[i].bytes && mappings[i].from < from + bytes && from < mappings[i].from + mappings[i].bytes)
            found = mappings[i];
    unlock(&lock_of_mappings);
    return found;
}

/* Of a mapping of which a part is unmapped, the larger of its ends is remembered. */
static void forget(uintptr_t from, size_t bytes)
{
    if (!may_overlap(from, bytes))
        return;
    lock(&lock_of_mappings);
    for (size_t i = 0; i < last; i++) {
        struct mapping *mapping = &mappings[i];
        uintptr_t end = mapping->from + mapping->bytes, to = from + bytes;
        if (!mapping->bytes || mapping->from >= to || from >= end)
            continue;
        size_t before = from > mapping->from ? from - mapping->from : 0, behind = end > to ? end - to : 0;
        mapping->from = before >= behind ? mapping->from : to;
        mapping->bytes = before >= behind ? before : behind;
        if (!mapping->bytes)
            space_has_unmapped(policy_mappings(mapping->object));
    }
    unlock(&lock_of_mappings);
}

struct object *object_at(uintptr_t from, size_t bytes)
{
    struct span *span = space_may_have((void *)from) ? space_span((void *)from) : NULL;
    if (span)
        return span->object;
    for (size_t i = 0; i < cure.object_count; i++) {
        struct object *object = &cure.object[i];
        if (object->kind != OF_VARIABLE || !cure.module[object->module].is_loaded)
            continue;
        uintptr_t begin = cure.module[object->module].bias + object->address;
        if (begin < from + bytes && from < begin + object->bytes)
            return object;
    }
    return mapping_at(from, bytes).object;
}

static uint16_t node_of_mapping(struct object *object)
{
    if (object->policy == AS_NEAR)
        return (uint16_t)(os_node() < cure.node_count ? os_node() : NO_NODE);
    if (object->policy != AS_PARTS || object->over != OVER_BLOCKS)
        return ANY_NODE;
    return object_next_node(object);
}

static void set_mapped(struct object *object, uintptr_t from, size_t bytes, bool again)
{
    uint16_t node = node_of_mapping(object);
    bool is_of_a_node = object->policy == AS_NEAR || (object->policy == AS_PARTS && object->over == OVER_BLOCKS);
    size_t needed = policy_mappings(object);
    if (object->policy == AS_PADDED || (is_of_a_node && node == NO_NODE) || !space_may_map(needed))
        return;
    if (!policy_set(object, from, bytes, node, again)) {
        space_has_unmapped(needed);
        return;
    }
    policy_count(object, 1, bytes);
    if (!remember(from, bytes, object))
        space_has_unmapped(needed);
}

static void note_mapped(void *address, size_t bytes, int protection, int flags, const void *frame)
{
    enum { ALL = PROT_READ | PROT_WRITE };
    int before = errno;
    modules_follow(frame);
    struct object *object = cure.table && flags & MAP_ANONYMOUS ? site_of(bytes, frame) : NULL;
    /* Where policies are refused it is touched, which makes all of it resident. */
    bool can_be_touched = (protection & ALL) == ALL && !(flags & MAP_NORESERVE);
    if (object && policy_can_be_set(object) && (!cure.is_refused || can_be_touched))
        set_mapped(object, (uintptr_t)address, bytes, false);
    errno = before;
}

PUBLIC void *mmap64(void *where, size_t bytes, int protection, int flags, int file, off64_t offset)
{
    NEXT_OR(MAP_FAILED, mmap64);
    void *result = next(where, bytes, protection, flags, file, offset);
    if (result == MAP_FAILED || is_sanitized())
        return result;
    if (flags & MAP_FIXED) {
        space_tear(where);
        forget((uintptr_t)where, bytes);
    }
    if (is_wanted(bytes))
        note_mapped(result, bytes, protection, flags, FRAME);
    return result;
}

PUBLIC void *mmap(void *where, size_t bytes, int protection, int flags, int file, off_t offset)
    __attribute__((alias("mmap64")));

PUBLIC int munmap(void *address, size_t bytes)
{
    NEXT_OR(-1, munmap);
    struct mapping mapping = mapping_at((uintptr_t)address, bytes);
    if (RARELY(mapping.object))
        pages_sample_freed(mapping.object, mapping.from, mapping.bytes);
    space_tear(address);
    int result = next(address, bytes);
    if (RARELY(result == 0 && mapping.object))
        forget((uintptr_t)address, bytes);
    return result;
}

/* The kernel keeps the policies of what was there; parts are those of the whole, so they are set anew. */
void *library_remap(remap *next, void *old, size_t old_bytes, size_t bytes, int flags, void *where, const void *frame)
{
    (void)frame;
    space_tear(old);
    space_tear(where);
    struct mapping mapping = mapping_at((uintptr_t)old, old_bytes);
    void *result = next(old, old_bytes, bytes, flags, where);
    if (result == MAP_FAILED || !mapping.object)
        return result;
    int before = errno;
    forget((uintptr_t)old, old_bytes);
    /* What is there already stays where it was touched first. */
    if (!cure.is_refused && policy_can_be_set(mapping.object) && object_takes(mapping.object, bytes))
        set_mapped(mapping.object, (uintptr_t)result, bytes, true);
    errno = before;
    return result;
}

void mapping_sample(struct object *object)
{
    if (!lock_briefly(&lock_of_mappings))
        return;
    for (size_t i = 0; i < last; i++)
        if (mappings[i].bytes && mappings[i].object == object)
            pages_add(mappings[i].from, mappings[i].bytes);
    unlock(&lock_of_mappings);
}

void mapping_lock(void (*function)(struct lock *))
{
    function(&lock_of_mappings);
}
