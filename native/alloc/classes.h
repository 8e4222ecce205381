/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Size classes of blocks in slabs: every 16 bytes up to 128, then four for each doubling, so that at most a fifth of a block
 * is not used. Where addresses are limited, blocks above 128 bytes have packed classes: eight for each doubling, 16 from
 * LARGEST_SMALL on. More classes keep more free blocks, so they are not for all. Class 0 is none. */
#ifndef ALLOC_CLASSES_H
#define ALLOC_CLASSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SMALLEST = 16,
    LARGEST_SMALL = 32 << 10,
    LARGEST_PACKED = 128 << 10,
    FIRST_PACKED = 41,
    FIRST_LARGE_PACKED = FIRST_PACKED + 8 * 8,
    CLASSES = FIRST_LARGE_PACKED + 2 * 16,
    UNIT_SHIFT = 14,
    UNIT = 1 << UNIT_SHIFT,
    /* Blocks up to this size lie in slabs of SMALL_SLAB units; larger ones in slabs of LARGE_SLAB, or those of packed classes
     * in slabs of LEAST_SLAB to LARGE_SLAB, of which the least is left behind the last block. */
    LARGEST_IN_SMALL_SLAB = 4 << 10,
    SMALL_SLAB = 4,
    LEAST_SLAB = 9,
    LARGE_SLAB = 16,
    /* Bytes that a thread hands over at once. */
    BATCH_BYTES = 16 << 10,
    LARGEST_BATCH = 128,
};

struct size_class {
    uint64_t reciprocal; /* 2^48 / size, rounded up */
    uint32_t size;
    uint16_t batch; /* blocks that are handed over at once */
    uint8_t slab;   /* units */
    uint8_t slab_alignment; /* units, so that blocks of a class that is not packed are aligned to each power of two of which
                               its size is a multiple */
};

extern struct size_class size_classes[CLASSES];
/* Those that are used, with class 0. */
extern unsigned class_count;

/* Fills the table, with packed classes or without. */
void classes_prepare(bool are_packed);

static inline unsigned class_of(size_t size)
{
    if (size <= 128)
        return (unsigned)((size + (size == 0) + 15) >> 4);
    size_t last = size - 1;
    unsigned order = 63 - (unsigned)__builtin_clzl(last);
    return 9 + (order - 7) * 4 + (unsigned)((last >> (order - 2)) & 3);
}

/* The packed class of a block above 128 bytes. */
static inline unsigned packed_class_of(size_t size)
{
    size_t last = size - 1;
    unsigned order = 63 - (unsigned)__builtin_clzl(last);
    if (size > LARGEST_SMALL)
        return FIRST_LARGE_PACKED + (order - 15) * 16 + (unsigned)((last >> (order - 4)) & 15);
    return FIRST_PACKED + (order - 7) * 8 + (unsigned)((last >> (order - 3)) & 7);
}

/* Whether a block can start at this offset in its slab. */
static inline int is_block_start(const struct size_class *class, uint64_t offset)
{
    return ((offset * class->reciprocal) >> 48) * class->size == offset;
}

#endif
