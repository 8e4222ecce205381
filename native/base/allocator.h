/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The allocator behind a library that has the malloc family: libnumalloc, the program's own, or the C library's. And memory
 * while it is looked up: the loader itself may allocate then. */
#ifndef ALLOCATOR_H
#define ALLOCATOR_H

#include "next.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RARELY(condition) __builtin_expect(!!(condition), 0)

#define MALLOC_FAMILY(DO)                                                                                              \
    DO(malloc) DO(calloc) DO(free) DO(realloc) DO(memalign) DO(aligned_alloc) DO(posix_memalign) DO(valloc) DO(pvalloc)
MALLOC_FAMILY(NEXT_DECLARE)

void *allocator_look_up(struct next *next);

static inline void *allocator_function(struct next *next)
{
    void *function = atomic_load_explicit(&next->function, memory_order_relaxed);
    return RARELY(!function) ? allocator_look_up(next) : function;
}

/* The allocator's function; NULL while this thread looks it up. */
#define ALLOCATOR(name) ((__typeof__(&name))allocator_function(&next_##name))

/* The same as `next`; where it is NULL, the function returns something else. */
#define ALLOCATOR_OR(otherwise, name)                                                                                  \
    __typeof__(&name) next = ALLOCATOR(name);                                                                          \
    if (RARELY(!next))                                                                                                 \
    return otherwise

enum { EARLY_BYTES = 1 << 16 };
extern char early_memory[EARLY_BYTES] __attribute__((visibility("hidden")));

/* Zeroed, never freed; NULL if there is no more. */
void *early_allocate(size_t size, size_t alignment);

static inline bool early_has(const void *block)
{
    return (uintptr_t)block - (uintptr_t)early_memory < EARLY_BYTES;
}

/* To the allocator's memory. */
void *early_move(const void *block, size_t size);

#endif
