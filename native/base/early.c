/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "early.h"
#include <stdatomic.h>

_Alignas(64) char early_memory[EARLY_BYTES];
static atomic_size_t used;

void *early_allocate(size_t size, size_t alignment)
{
    enum { LEAST = 16 };
    size_t step = alignment < LEAST ? LEAST : alignment, begin = atomic_load(&used), from;
    if (size > EARLY_BYTES || step > EARLY_BYTES)
        return NULL;
    do {
        uintptr_t base = (uintptr_t)early_memory;
        from = (base + begin + step - 1) / step * step - base;
        if (from + size > EARLY_BYTES)
            return NULL;
    } while (!atomic_compare_exchange_weak(&used, &begin, from + size));
    return early_memory + from;
}

size_t early_bytes(const void *block)
{
    return EARLY_BYTES - (size_t)((const char *)block - early_memory);
}
