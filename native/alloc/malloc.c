/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions of malloc. */
#define _GNU_SOURCE
#include "begin.h"
#include "large.h"
#include "names.h"
#include "settings.h"
#include <errno.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* What is in use may be this large; the standard forbids larger objects. */
#define LARGEST_BLOCK ((size_t)PTRDIFF_MAX)

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* Does something for both pools of each region, in which all free blocks are. */
static bool for_pools(bool (*act)(struct pool *))
{
    bool acted = false;
    for (unsigned i = 0; regions && i < space.regions; i++) {
        for (unsigned class = 1; class < class_count; class ++)
            center_drain(&regions[i], class, false);
        acted |= act(&regions[i].small);
        acted |= act(&regions[i].large);
    }
    return acted;
}

/* There is no memory: gives addresses back that other sizes and nodes do not need. True if there were some. */
static bool make_room(struct cache *cache)
{
    cache_empty(cache);
    return for_pools(pool_shrink);
}

static void *large_of(struct cache *cache, size_t bytes, size_t alignment, bool *is_zero)
{
    cache_follow(cache);
    return large_take((unsigned)(cache->region - regions), bytes, alignment, is_zero);
}

static __attribute__((noinline)) void *take_large(size_t bytes, size_t alignment, bool *is_zero)
{
    struct cache *cache = cache_here();
    if (!cache || bytes > LARGEST_BLOCK)
        return no_memory();
    void *block = large_of(cache, bytes, alignment, is_zero);
    if (!block && make_room(cache))
        block = large_of(cache, bytes, alignment, is_zero);
    cache_after(cache);
    return block ? block : no_memory();
}

/* The first block of a thread, those after its end, and when there is no memory. */
static __attribute__((noinline)) void *take_slowly(unsigned class, bool *is_zero)
{
    struct cache *cache = cache_here();
    void *block = cache ? cache_take(cache, class, is_zero) : NULL;
    if (!block && cache && make_room(cache))
        block = cache_take(cache, class, is_zero);
    cache_after(cache);
    return block ? block : no_memory();
}

static inline void *take_small(unsigned class, bool *is_zero)
{
    struct cache *cache = cache_mine;
    void *block = cache ? cache_take(cache, class, is_zero) : NULL;
    return __builtin_expect(block != NULL, 1) ? block : take_slowly(class, is_zero);
}

/* The class of a block, 0 of a large one. */
static inline unsigned class_for(size_t bytes)
{
    if (__builtin_expect(class_count > FIRST_PACKED, 0) && bytes > 128 && bytes <= LARGEST_PACKED)
        return packed_class_of(bytes);
    return __builtin_expect(bytes <= LARGEST_SMALL, 1) ? class_of(bytes) : 0;
}

static inline void *take(size_t bytes, bool *is_zero)
{
    unsigned class = class_for(bytes);
    if (__builtin_expect(class, 1))
        return take_small(class, is_zero);
    return take_large(bytes, 1, is_zero);
}

/* The class of a small block, 0 of a large one; what is neither is misuse. */
static inline unsigned class_at(const void *block, size_t offset)
{
    if (__builtin_expect(!space_has(offset), 0))
        misuse("invalid free: no block of this library begins at", block);
    const struct unit *unit = unit_at(offset);
    if (kind_of(unit) != SLAB)
        return 0;
    if (!is_block_start(&size_classes[unit->class], (offset & (UNIT - 1)) + unit->offset))
        misuse("invalid free: no block begins at", block);
    return unit->class;
}

static __attribute__((noinline)) void give_slowly(struct block *block, unsigned class, unsigned region)
{
    struct cache *cache = cache_here();
    /* Without memory for a cache the block is lost. */
    if (!cache)
        return;
    if (&regions[region] == cache->region)
        cache_put(cache, class, block);
    else
        cache_send(cache, region, block);
    cache_after(cache);
}

static inline void give(void *memory)
{
    struct block *block = memory;
    size_t offset = space_offset(block);
    unsigned class = class_at(block, offset);
    if (__builtin_expect(class == 0, 0)) {
        large_give(block);
        return;
    }
    if (block_is_free(block))
        misuse("double free of the block", block);
    struct cache *cache = cache_mine;
    if (__builtin_expect(!cache || region_of(offset) != (unsigned)(cache->region - regions), 0))
        give_slowly(block, class, region_of(offset));
    else
        cache_put(cache, class, block);
}

static __attribute__((noinline)) void *malloc_slowly(size_t bytes)
{
    bool is_zero;
    return take(bytes, &is_zero);
}

EXPORT void *NAME(malloc)(size_t bytes)
{
    struct cache *cache = cache_mine;
    /* Where classes are packed, the lists of the others above 128 bytes are empty. */
    if (__builtin_expect(cache && bytes <= LARGEST_SMALL, 1)) {
        void *block = cache_pop(cache, class_of(bytes));
        if (__builtin_expect(block != NULL, 1))
            return block;
    }
    return malloc_slowly(bytes);
}

EXPORT void NAME(free)(void *block)
{
    if (__builtin_expect(block != NULL, 1))
        give(block);
}

EXPORT void *NAME(calloc)(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return no_memory();
    bool is_zero = false;
    void *block = take(bytes, &is_zero);
    if (block && !is_zero)
        memset(block, 0, bytes);
    return block;
}

/* The bytes of a block of this class, 0 for a large one. */
static size_t usable(const void *block, unsigned class)
{
    if (class)
        return size_classes[class].size;
    if (!large_is(block))
        misuse("invalid: no block begins at", block);
    return large_usable(block);
}

static void *resize_large(void *block, size_t bytes)
{
    struct cache *cache = cache_here();
    if (!cache || bytes > LARGEST_BLOCK)
        return no_memory();
    cache_follow(cache);
    void *other = large_resize((unsigned)(cache->region - regions), block, bytes);
    if (!other && make_room(cache))
        other = large_resize((unsigned)(cache->region - regions), block, bytes);
    cache_after(cache);
    return other ? other : no_memory();
}

EXPORT void *NAME(realloc)(void *block, size_t bytes)
{
    if (!block)
        return NAME(malloc)(bytes);
    if (bytes == 0) {
        give(block);
        return NULL;
    }
    unsigned class = class_at(block, space_offset(block));
    size_t old = usable(block, class);
    if (class && bytes <= old && (bytes > old / 2 || old == SMALLEST))
        return block;
    if (!class && !class_for(bytes))
        return resize_large(block, bytes);
    void *other = NAME(malloc)(bytes);
    if (!other)
        return NULL;
    memcpy(other, block, old < bytes ? old : bytes);
    give(block);
    return other;
}

EXPORT void *NAME(reallocarray)(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return no_memory();
    return NAME(realloc)(block, bytes);
}

/* A block at a multiple of a power of two. */
static void *take_aligned(size_t alignment, size_t bytes)
{
    bool is_zero;
    if (bytes > LARGEST_BLOCK || alignment > LARGEST_BLOCK)
        return no_memory();
    if (alignment <= SMALLEST)
        return take(bytes, &is_zero);
    size_t least = bytes < alignment ? alignment : bytes;
    if (least > LARGEST_SMALL || alignment > LARGEST_SMALL)
        return take_large(bytes, alignment, &is_zero);
    /* Slabs begin at a unit, so a class fits whose size is a multiple; powers of two are. */
    unsigned class = class_of(least);
    while (size_classes[class].size & (alignment - 1))
        class ++;
    return take_small(class, &is_zero);
}

static inline bool is_power_of_two(size_t number)
{
    return number && !(number & (number - 1));
}

static void *refuse(void)
{
    errno = EINVAL;
    return NULL;
}

/* Whether the C library rounds alignments up that are no power of two: since 2.38 its aligned_alloc refuses them. */
static bool rounds_alignments(void)
{
#ifdef __GLIBC__
    const char *version = gnu_get_libc_version();
    return strncmp(version, "2.", 2) == 0 && strtoul(version + 2, NULL, 10) < 38;
#else
    return false;
#endif
}

EXPORT void *NAME(memalign)(size_t alignment, size_t bytes)
{
    size_t rounded = SMALLEST;
    while (rounded < alignment && rounded <= SIZE_MAX / 2)
        rounded *= 2;
    return rounded < alignment ? refuse() : take_aligned(rounded, bytes);
}

EXPORT void *NAME(aligned_alloc)(size_t alignment, size_t bytes)
{
    if (!is_power_of_two(alignment) && !rounds_alignments())
        return refuse();
    return NAME(memalign)(alignment, bytes);
}

EXPORT int NAME(posix_memalign)(void **block, size_t alignment, size_t bytes)
{
    if (!is_power_of_two(alignment) || alignment % sizeof(void *))
        return EINVAL;
    int before = errno;
    void *found = take_aligned(alignment, bytes);
    errno = before;
    if (!found)
        return ENOMEM;
    *block = found;
    return 0;
}

EXPORT void *NAME(valloc)(size_t bytes)
{
    return take_aligned(os_page_bytes(), bytes);
}

EXPORT void *NAME(pvalloc)(size_t bytes)
{
    size_t page = os_page_bytes();
    if (bytes > LARGEST_BLOCK - page)
        return no_memory();
    return take_aligned(page, (bytes + page - 1) & ~(page - 1));
}

EXPORT size_t NAME(malloc_usable_size)(void *block)
{
    return block ? usable(block, class_at(block, space_offset(block))) : 0;
}

/* As in C23: the size is what the block was asked with. */
EXPORT void NAME(free_sized)(void *block, size_t bytes)
{
    (void)bytes;
    NAME(free)(block);
}

EXPORT void NAME(free_aligned_sized)(void *block, size_t alignment, size_t bytes)
{
    (void)alignment, (void)bytes;
    NAME(free)(block);
}

EXPORT int NAME(malloc_trim)(size_t pad)
{
    (void)pad;
    return for_pools(pool_drop);
}
