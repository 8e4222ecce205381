/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Mappings that the program makes. Those of the C library do not come here, and those of other allocators are made while
 * one of the malloc family is called. */
#define _GNU_SOURCE
#include "allocation.h"
#include "functions.h"
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#define FRAME __builtin_frame_address(0)

/* All logged mappings are between these. */
static _Atomic uintptr_t lowest = UINTPTR_MAX, highest;

static bool may_be_logged(const void *address, size_t bytes)
{
    return (uintptr_t)address < atomic_load_explicit(&highest, memory_order_relaxed) &&
           (uintptr_t)address + bytes > atomic_load_explicit(&lowest, memory_order_relaxed);
}

static void note_bounds(const void *address, size_t bytes)
{
    uintptr_t from = (uintptr_t)address, low = atomic_load(&lowest), high = atomic_load(&highest);
    while (from < low && !atomic_compare_exchange_weak(&lowest, &low, from))
        continue;
    while (from + bytes > high && !atomic_compare_exchange_weak(&highest, &high, from + bytes))
        continue;
}

static bool is_inside(const void *frame)
{
    return own_log.inside > (uintptr_t)frame;
}

static void note_mapped(enum function function, void *address, size_t bytes, int protection, int flags,
                        const void *frame)
{
    uint64_t other = (uint32_t)protection | (uint64_t)(uint32_t)flags << 32;
    note_bounds(address, bytes);
    log_count(bytes);
    log_write(MAPPED, function, (uint64_t)(uintptr_t)address, bytes, other, frame);
}

PUBLIC void *mmap64(void *where, size_t bytes, int protection, int flags, int file, off64_t offset)
{
    if (!NEXT(mmap64)) {
        errno = ENOSYS;
        return MAP_FAILED;
    }
    void *result = NEXT(mmap64)(where, bytes, protection, flags, file, offset);
    bool replaces = (flags & MAP_FIXED) && may_be_logged(where, bytes);
    if (result != MAP_FAILED && (bytes >= log_least || replaces) && !is_inside(FRAME))
        note_mapped(BY_MMAP, result, bytes, protection, flags, FRAME);
    return result;
}

PUBLIC void *mmap(void *where, size_t bytes, int protection, int flags, int file, off_t offset)
    __attribute__((alias("mmap64")));

PUBLIC int munmap(void *address, size_t bytes)
{
    if (!NEXT(munmap)) {
        errno = ENOSYS;
        return -1;
    }
    bool is_logged = may_be_logged(address, bytes) && !is_inside(FRAME);
    if (is_logged)
        log_write(UNMAPPED, BY_MUNMAP, (uint64_t)(uintptr_t)address, bytes, 0, FRAME);
    int result = NEXT(munmap)(address, bytes);
    if (is_logged && result)
        log_write(UNMAPPED_NOT, BY_MUNMAP, (uint64_t)(uintptr_t)address, bytes, 0, FRAME);
    return result;
}

/* The C library's function takes the address only with MREMAP_FIXED or MREMAP_DONTUNMAP; it does no harm else. */
PUBLIC void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *where = va_arg(rest, void *);
    va_end(rest);
    if (!NEXT(mremap)) {
        errno = ENOSYS;
        return MAP_FAILED;
    }
    bool is_outside = !is_inside(FRAME), was_logged = is_outside && may_be_logged(old, old_bytes);
    if (was_logged)
        log_write(UNMAPPED, BY_MREMAP, (uint64_t)(uintptr_t)old, old_bytes, 0, FRAME);
    void *result = NEXT(mremap)(old, old_bytes, bytes, flags, where);
    if (was_logged && result == MAP_FAILED)
        log_write(UNMAPPED_NOT, BY_MREMAP, (uint64_t)(uintptr_t)old, old_bytes, 0, FRAME);
    if (result != MAP_FAILED && is_outside && (was_logged || bytes >= log_least))
        note_mapped(BY_MREMAP, result, bytes, 0, flags, FRAME);
    return result;
}
