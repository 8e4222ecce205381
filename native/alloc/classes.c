/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "classes.h"

struct size_class size_classes[CLASSES];

static uint32_t size_of(unsigned class)
{
    if (class <= 8)
        return class * 16;
    unsigned order = (class - 9) / 4, quarter = (class - 9) % 4;
    return (128u << order) + (32u << order) * (quarter + 1);
}

void classes_prepare(void)
{
    for (unsigned i = 1; i < CLASSES; i++) {
        uint32_t size = size_of(i), batch = BATCH_BYTES / size;
        size_classes[i] = (struct size_class){
            .reciprocal = ((UINT64_C(1) << 48) + size - 1) / size,
            .size = size,
            .batch = batch < 1 ? 1 : batch > LARGEST_BATCH ? LARGEST_BATCH : batch,
        };
    }
}
