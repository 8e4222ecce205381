/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The malloc family in place of the allocator's. Each calls the allocator's function as the program did. */
#define _GNU_SOURCE
#include "allocation.h"
#include "blocks.h"
#include "base/allocator.h"
#include "sites.h"
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Of the interposed function: the caller's return address is in it. */
#define FRAME __builtin_frame_address(0)

/* Allocators call functions of this library too: what they do is not the program's. The frame tells whether the call that
 * was noted goes on: a handler of a signal may have left it. */
static inline bool is_inside(const void *frame)
{
    return RARELY(own_log.inside > (uintptr_t)frame);
}

static inline bool is_wanted(size_t size);

/* Logs the block if it is wanted, and notes the site of a small one. */
static inline __attribute__((always_inline)) void note(enum function function, void *block, size_t size,
                                                       size_t alignment, const void *frame)
{
    if (is_wanted(size))
        log_block(function, block, size, alignment, frame);
    if (sites_may_have(block) && size < log_least)
        sites_add(block, size, frame);
}

/* Calls the allocator and decides about the block. */
#define ALLOCATE(function, size, alignment, call)                                                                      \
    void *frame = FRAME, *block;                                                                                       \
    if (is_inside(frame))                                                                                              \
        return call;                                                                                                   \
    own_log.inside = (uintptr_t)frame;                                                                                 \
    block = call;                                                                                                      \
    own_log.inside = 0;                                                                                                \
    note(function, block, size, alignment, frame);                                                                     \
    return block

/* Counts the bytes of small blocks down. */
static inline bool is_wanted(size_t size)
{
    if (RARELY(size >= log_least))
        return true;
    own_log.left = (int64_t)((uint64_t)own_log.left - size);
    return RARELY(own_log.left < 0);
}

PUBLIC void *malloc(size_t size)
{
    ALLOCATOR_OR(early_allocate(size, 0), malloc);
    ALLOCATE(BY_MALLOC, size, 0, next(size));
}

PUBLIC void *calloc(size_t count, size_t each)
{
    __typeof__(&calloc) next = ALLOCATOR(calloc);
    size_t size;
    if (RARELY(__builtin_mul_overflow(count, each, &size)))
        size = SIZE_MAX;
    if (RARELY(!next))
        return early_allocate(size, 0);
    ALLOCATE(BY_CALLOC, size, 0, next(count, each));
}

PUBLIC void free(void *block)
{
    if (blocks_may_have(block))
        log_free(BY_FREE, block, FRAME);
    if (sites_may_have(block))
        sites_remove(block);
    if (RARELY(early_has(block)))
        return;
    __typeof__(&free) next = ALLOCATOR(free);
    if (next)
        next(block);
}

PUBLIC void *realloc(void *old, size_t size)
{
    __typeof__(&realloc) next = ALLOCATOR(realloc);
    if (RARELY(early_has(old)))
        return early_move(old, size);
    if (RARELY(!next))
        return old ? NULL : early_allocate(size, 0);
    void *frame = FRAME;
    if (is_inside(frame))
        return next(old, size);
    bool was_logged = blocks_may_have(old) && log_free(BY_REALLOC, old, frame);
    if (sites_may_have(old))
        sites_remove(old);
    own_log.inside = (uintptr_t)frame;
    void *block = next(old, size);
    own_log.inside = 0;
    if (RARELY(was_logged && !block && size))
        log_kept(old, frame);
    note(BY_REALLOC, block, size, 0, frame);
    return block;
}

PUBLIC void *memalign(size_t alignment, size_t size)
{
    ALLOCATOR_OR(early_allocate(size, alignment), memalign);
    ALLOCATE(BY_MEMALIGN, size, alignment, next(alignment, size));
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size)
{
    ALLOCATOR_OR(early_allocate(size, alignment), aligned_alloc);
    ALLOCATE(BY_ALIGNED_ALLOC, size, alignment, next(alignment, size));
}

PUBLIC int posix_memalign(void **result, size_t alignment, size_t size)
{
    ALLOCATOR_OR((*result = early_allocate(size, alignment)) ? 0 : ENOMEM, posix_memalign);
    void *frame = FRAME;
    if (is_inside(frame))
        return next(result, alignment, size);
    own_log.inside = (uintptr_t)frame;
    int error = next(result, alignment, size);
    own_log.inside = 0;
    note(BY_POSIX_MEMALIGN, error ? NULL : *result, size, alignment, frame);
    return error;
}

PUBLIC void *valloc(size_t size)
{
    ALLOCATOR_OR(NULL, valloc);
    ALLOCATE(BY_VALLOC, size, 4096, next(size));
}

PUBLIC void *pvalloc(size_t size)
{
    ALLOCATOR_OR(NULL, pvalloc);
    ALLOCATE(BY_PVALLOC, size, 4096, next(size));
}
