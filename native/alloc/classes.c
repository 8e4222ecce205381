/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "classes.h"

struct size_class size_classes[CLASSES];
unsigned class_count = FIRST_PACKED;

/* The size of the class with this number, of those that divide each doubling from `first` on into `steps`. */
static uint32_t size_in(uint32_t first, unsigned steps, unsigned number)
{
    uint32_t order = number / steps, step = (first / steps) << order;
    return (first << order) + step * (number % steps + 1);
}

static uint32_t size_of(unsigned class)
{
    if (class <= 8)
        return class * 16;
    if (class < FIRST_PACKED)
        return size_in(128, 4, class - 9);
    return class < FIRST_LARGE_PACKED ? size_in(128, 8, class - FIRST_PACKED)
                                      : size_in(LARGEST_SMALL, 16, class - FIRST_LARGE_PACKED);
}

/* The slab with the smallest share behind its last block. */
static uint32_t packed_slab(uint32_t size)
{
    uint32_t best = LARGE_SLAB;
    for (uint32_t units = LARGE_SLAB; units-- > LEAST_SLAB;) {
        if ((units << UNIT_SHIFT) % size * best < (best << UNIT_SHIFT) % size * units)
            best = units;
    }
    return best;
}

void classes_prepare(bool are_packed)
{
    class_count = are_packed ? CLASSES : FIRST_PACKED;
    for (unsigned i = 1; i < class_count; i++) {
        uint32_t size = size_of(i), batch = BATCH_BYTES / size, slab = LARGE_SLAB;
        if (size <= LARGEST_IN_SMALL_SLAB)
            slab = SMALL_SLAB;
        else if (i >= FIRST_PACKED)
            slab = packed_slab(size);
        size_classes[i] = (struct size_class){
            .reciprocal = ((UINT64_C(1) << 48) + size - 1) / size,
            .size = size,
            .batch = (uint16_t)(batch < 1 ? 1 : batch > LARGEST_BATCH ? LARGEST_BATCH : batch),
            .slab = (uint8_t)slab,
            .slab_alignment = slab % SMALL_SLAB == 0 ? SMALL_SLAB : 1,
        };
    }
}
