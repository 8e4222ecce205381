/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Mappings that the program makes. Those of the C library do not come here, and those of other allocators are made while
 * one of the malloc family is called. */
#define _GNU_SOURCE
#include "allocation.h"
#include "base/calls.h"
#include "functions.h"
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
    NEXT_OR(MAP_FAILED, mmap64);
    void *result = next(where, bytes, protection, flags, file, offset);
    bool replaces = (flags & MAP_FIXED) && may_be_logged(where, bytes);
    if (result != MAP_FAILED && (bytes >= log_least || replaces) && !is_inside(FRAME))
        note_mapped(BY_MMAP, result, bytes, protection, flags, FRAME);
    return result;
}

PUBLIC void *mmap(void *where, size_t bytes, int protection, int flags, int file, off_t offset)
    __attribute__((alias("mmap64")));

PUBLIC int munmap(void *address, size_t bytes)
{
    NEXT_OR(-1, munmap);
    bool is_logged = may_be_logged(address, bytes) && !is_inside(FRAME);
    if (is_logged)
        log_write(UNMAPPED, BY_MUNMAP, (uint64_t)(uintptr_t)address, bytes, 0, FRAME);
    int result = next(address, bytes);
    if (is_logged && result)
        log_write(UNMAPPED_NOT, BY_MUNMAP, (uint64_t)(uintptr_t)address, bytes, 0, FRAME);
    return result;
}

void *library_remap(remap *next, void *old, size_t old_bytes, size_t bytes, int flags, void *where, const void *frame)
{
    bool is_outside = !is_inside(frame), was_logged = is_outside && may_be_logged(old, old_bytes);
    if (was_logged)
        log_write(UNMAPPED, BY_MREMAP, (uint64_t)(uintptr_t)old, old_bytes, 0, frame);
    void *result = next(old, old_bytes, bytes, flags, where);
    if (was_logged && result == MAP_FAILED)
        log_write(UNMAPPED_NOT, BY_MREMAP, (uint64_t)(uintptr_t)old, old_bytes, 0, frame);
    if (result != MAP_FAILED && is_outside && (was_logged || bytes >= log_least))
        note_mapped(BY_MREMAP, result, bytes, 0, flags, frame);
    return result;
}
