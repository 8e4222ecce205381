/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "allocator.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

MALLOC_FAMILY(NEXT_DEFINE)

void *allocator_look_up(struct next *next)
{
    static __thread bool is_looking __attribute__((tls_model("initial-exec")));
    if (is_looking)
        return NULL;
    int before = errno;
    is_looking = true;
    void *function = next_function(next);
    is_looking = false;
    errno = before;
    return function;
}

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

void *early_move(const void *block, size_t size)
{
    size_t most = EARLY_BYTES - (size_t)((const char *)block - early_memory);
    void *fresh = malloc(size);
    if (fresh)
        memmove(fresh, block, most < size ? most : size);
    return fresh;
}
