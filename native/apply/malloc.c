/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The malloc family in place of the allocator's. A size that no object has goes to the allocator at once. The functions for other sizes are
 * jumped to, so that their frame is where the program's call is. */
#define _GNU_SOURCE
#include "base/allocator.h"
#include "base/begin.h"
#include "blocks.h"
#include "functions.h"
#include "modules.h"
#include "pool.h"
#include "sanitized.h"
#include "sites.h"
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME __builtin_frame_address(0)
#define RARE __attribute__((noinline))

/* Set while this thread looks for the object of a block: what is allocated for that is the library's. */
static __thread volatile bool is_looking __attribute__((tls_model("initial-exec")));

/* The object of a block that the direct caller does not tell. */
static __attribute__((noinline)) struct object *look(size_t size, const void *frame)
{
    if (is_looking || is_sanitized())
        return NULL;
    int before = errno;
    is_looking = true;
    library_begin(environ);
    modules_follow(frame);
    struct object *object = cure.table && space_bytes ? site_of(size, frame) : NULL;
    is_looking = false;
    errno = before;
    return object;
}

/* A new block of this library; NULL if the allocator behind is to be called. */
static inline __attribute__((always_inline)) void *take(size_t size, size_t alignment, bool zeroed, const void *frame)
{
    struct object *object = site_first(((const uintptr_t *)frame)[1]);
    void *block = object && alignment == 0 ? pool_again(object, size) : NULL;
    if (block)
        return zeroed ? memset(block, 0, size) : block;
    if (!site_is_plain(object, size))
        object = look(size, frame);
    return object ? block_new(object, size, alignment, zeroed) : NULL;
}

static struct span *own_span(const void *block)
{
    return space_may_have(block) ? space_span(block) : NULL;
}

static RARE void *malloc_wanted(size_t size)
{
    void *block = take(size, 0, false, FRAME);
    if (block)
        return block;
    ALLOCATOR_OR(early_allocate(size, 0), malloc);
    return next(size);
}

PUBLIC void *malloc(size_t size)
{
    if (is_wanted(size))
        return malloc_wanted(size);
    ALLOCATOR_OR(early_allocate(size, 0), malloc);
    return next(size);
}

static RARE void *calloc_wanted(size_t count, size_t each)
{
    size_t size;
    void *block = __builtin_mul_overflow(count, each, &size) ? NULL : take(size, 0, true, FRAME);
    if (block)
        return block;
    ALLOCATOR_OR(early_allocate(count * each, 0), calloc);
    return next(count, each);
}

PUBLIC void *calloc(size_t count, size_t each)
{
    size_t size;
    /* The allocator refuses what has too many bytes. */
    if (!__builtin_mul_overflow(count, each, &size) && is_wanted(size))
        return calloc_wanted(count, each);
    __typeof__(&calloc) next = ALLOCATOR(calloc);
    if (RARELY(!next))
        return early_allocate(__builtin_mul_overflow(count, each, &size) ? SIZE_MAX : size, 0);
    return next(count, each);
}

static RARE void free_own(void *block)
{
    struct span *span = space_span(block);
    __typeof__(&free) next;
    if (span && span->pool)
        pool_free(span, block);
    else if (span)
        block_free(span, block);
    else if ((next = ALLOCATOR(free)))
        next(block);
}

PUBLIC void free(void *block)
{
    if (space_may_have(block)) {
        free_own(block);
        return;
    }
    if (RARELY(early_has(block)))
        return;
    __typeof__(&free) next = ALLOCATOR(free);
    if (next)
        next(block);
}

/* A new block with the content of an old one of `old_bytes` bytes, which is freed. */
static void *moved(void *old, size_t old_bytes, void *fresh, size_t size)
{
    if (!fresh)
        return NULL;
    memcpy(fresh, old, old_bytes < size ? old_bytes : size);
    free(old);
    return fresh;
}

/* The block stays one of its object, whichever code asks for another size. */
static void *realloc_own(struct span *span, void *old, size_t size)
{
    struct object *object = span->object;
    if (size == 0) {
        block_free(span, old);
        return NULL;
    }
    if (block_fits(span, size))
        return old;
    void *fresh = NULL;
    int before = errno;
    if (object_takes(object, size))
        fresh = block_new(object, size, 0, false);
    else
        count_up(&object->told->other_size, 1);
    errno = before;
    if (!fresh) {
        ALLOCATOR_OR(NULL, malloc);
        fresh = next(size);
    }
    return moved(old, block_usable(span), fresh, size);
}

static RARE void *realloc_wanted(void *old, size_t size)
{
    struct span *span = own_span(old);
    if (span)
        return realloc_own(span, old, size);
    __typeof__(&realloc) next = ALLOCATOR(realloc);
    __typeof__(&malloc_usable_size) usable = ALLOCATOR(malloc_usable_size);
    void *fresh = !old || (usable && size) ? take(size, 0, false, FRAME) : NULL;
    if (fresh && old)
        return moved(old, usable(old), fresh, size);
    if (fresh)
        return fresh;
    return next ? next(old, size) : old ? NULL : early_allocate(size, 0);
}

PUBLIC void *realloc(void *old, size_t size)
{
    if (RARELY(early_has(old)))
        return early_move(old, size);
    if (is_wanted(size) || space_may_have(old))
        return realloc_wanted(old, size);
    __typeof__(&realloc) next = ALLOCATOR(realloc);
    if (RARELY(!next))
        return old ? NULL : early_allocate(size, 0);
    return next(old, size);
}

static bool is_power(size_t alignment)
{
    return alignment && (alignment & (alignment - 1)) == 0;
}

/* Each allocator has its own answer to an alignment that is no power of two. */
#define ALIGNED(name)                                                                                                  \
    static RARE void *name##_wanted(size_t alignment, size_t size)                                                     \
    {                                                                                                                  \
        void *block = is_power(alignment) ? take(size, alignment, false, FRAME) : NULL;                                \
        if (block)                                                                                                     \
            return block;                                                                                              \
        ALLOCATOR_OR(early_allocate(size, alignment), name);                                                           \
        return next(alignment, size);                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    PUBLIC void *name(size_t alignment, size_t size)                                                                   \
    {                                                                                                                  \
        if (is_wanted(size))                                                                                           \
            return name##_wanted(alignment, size);                                                                     \
        ALLOCATOR_OR(early_allocate(size, alignment), name);                                                           \
        return next(alignment, size);                                                                                  \
    }

ALIGNED(memalign)
ALIGNED(aligned_alloc)

static RARE int posix_memalign_wanted(void **result, size_t alignment, size_t size)
{
    bool is_right = is_power(alignment) && alignment % sizeof(void *) == 0;
    void *block = is_right ? take(size, alignment, false, FRAME) : NULL;
    if (block) {
        *result = block;
        return 0;
    }
    ALLOCATOR_OR((*result = early_allocate(size, alignment)) ? 0 : ENOMEM, posix_memalign);
    return next(result, alignment, size);
}

PUBLIC int posix_memalign(void **result, size_t alignment, size_t size)
{
    if (is_wanted(size))
        return posix_memalign_wanted(result, alignment, size);
    ALLOCATOR_OR((*result = early_allocate(size, alignment)) ? 0 : ENOMEM, posix_memalign);
    return next(result, alignment, size);
}

static RARE void *valloc_wanted(size_t size)
{
    void *block = take(size, os_page_bytes(), false, FRAME);
    if (block)
        return block;
    ALLOCATOR_OR(NULL, valloc);
    return next(size);
}

PUBLIC void *valloc(size_t size)
{
    if (is_wanted(size))
        return valloc_wanted(size);
    ALLOCATOR_OR(NULL, valloc);
    return next(size);
}

static RARE void *pvalloc_wanted(size_t size)
{
    size_t page = os_page_bytes(), rounded = (size + page - 1) / page * page;
    void *block = rounded >= size ? take(rounded, page, false, FRAME) : NULL;
    if (block)
        return block;
    ALLOCATOR_OR(NULL, pvalloc);
    return next(size);
}

PUBLIC void *pvalloc(size_t size)
{
    if (is_wanted(size))
        return pvalloc_wanted(size);
    ALLOCATOR_OR(NULL, pvalloc);
    return next(size);
}

PUBLIC size_t malloc_usable_size(void *block)
{
    struct span *span = own_span(block);
    if (RARELY(span))
        return block_usable(span);
    __typeof__(&malloc_usable_size) next = ALLOCATOR(malloc_usable_size);
    return next && !early_has(block) ? next(block) : 0;
}
