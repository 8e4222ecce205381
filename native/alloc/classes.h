/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Size classes of small blocks: every 16 bytes up to 128, then four for each doubling, so that at most a fifth of a block
 * is not used. Class 0 is none. */
#ifndef ALLOC_CLASSES_H
#define ALLOC_CLASSES_H

#include <stddef.h>
#include <stdint.h>

enum {
    SMALLEST = 16,
    LARGEST_SMALL = 32 << 10,
    CLASSES = 41,
    UNIT_SHIFT = 14,
    UNIT = 1 << UNIT_SHIFT,
    /* Blocks up to this size lie in slabs of SMALL_SLAB units, larger ones in slabs of LARGE_SLAB. Slabs are aligned to
     * SMALL_SLAB units, so that blocks whose size is a multiple of a power of two are aligned to it. */
    LARGEST_IN_SMALL_SLAB = 4 << 10,
    SMALL_SLAB = 4,
    LARGE_SLAB = 16,
    /* Bytes that a thread hands over at once. */
    BATCH_BYTES = 16 << 10,
    LARGEST_BATCH = 128,
};

struct size_class {
    uint64_t reciprocal; /* 2^48 / size, rounded up */
    uint32_t size;
    uint32_t batch; /* blocks that are handed over at once */
};

extern struct size_class size_classes[CLASSES];

/* Fills the table. */
void classes_prepare(void);

static inline unsigned class_of(size_t size)
{
    if (size <= 128)
        return (unsigned)((size + (size == 0) + 15) >> 4);
    size_t last = size - 1;
    unsigned order = 63 - (unsigned)__builtin_clzl(last);
    return 9 + (order - 7) * 4 + (unsigned)((last >> (order - 2)) & 3);
}

static inline unsigned slab_units(unsigned class)
{
    return size_classes[class].size <= LARGEST_IN_SMALL_SLAB ? SMALL_SLAB : LARGE_SLAB;
}

/* Whether a block can start at this offset in its slab. */
static inline int is_block_start(const struct size_class *class, uint64_t offset)
{
    return ((offset * class->reciprocal) >> 48) * class->size == offset;
}

#endif
