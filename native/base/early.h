/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory for allocations while the allocator is looked up: the loader itself may allocate then. */
#ifndef EARLY_H
#define EARLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EARLY_BYTES = 1 << 16 };
extern char early_memory[EARLY_BYTES] __attribute__((visibility("hidden")));

/* Zeroed, never freed; NULL if there is no more. */
void *early_allocate(size_t size, size_t alignment);

static inline bool early_has(const void *block)
{
    return (uintptr_t)block - (uintptr_t)early_memory < EARLY_BYTES;
}

/* How many bytes may be read from there on. */
size_t early_bytes(const void *block);

#endif
