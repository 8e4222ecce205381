/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A loop's values as units: "for (i = start; i < end; i += step)", or > where it goes down. All arithmetic is modulo 2^64, so
 * that one form serves signed and unsigned loops. */
#ifndef SCHED_SPANS_H
#define SCHED_SPANS_H

#include "shares.h"
#include <stdbool.h>
#include <stdint.h>

struct span {
    uint64_t start, end, step;
    uint64_t iterations;
    uint64_t unit;                 /* iterations of a unit */
    uint32_t units;
};

/* The iterations of a loop whose first value is before its end in its direction; `distance` is positive. */
static inline uint64_t iterations_of(uint64_t distance, uint64_t step)
{
    return (distance - 1) / step + 1;
}

/* A unit is a chunk, so that chunks begin where the program expects them; it is several where a loop has too many. */
static inline struct span span_of(uint64_t start, uint64_t end, uint64_t step, bool is_up, bool is_empty, uint64_t chunk)
{
    struct span span = {.start = start, .end = end, .step = step};
    if (is_empty)
        return span;
    span.iterations = is_up ? iterations_of(end - start, step) : iterations_of(start - end, -step);
    span.unit = chunk == 0 ? 1 : chunk < span.iterations ? chunk : span.iterations;
    uint64_t units = iterations_of(span.iterations, span.unit);
    if (units > MAX_UNITS) {
        span.unit *= iterations_of(units, MAX_UNITS);
        units = iterations_of(span.iterations, span.unit);
    }
    span.units = (uint32_t)units;
    return span;
}

static inline struct span span_of_long(long long start, long long end, long long step, long long chunk)
{
    bool is_empty = step > 0 ? start >= end : start <= end;
    return span_of((uint64_t)start, (uint64_t)end, (uint64_t)step, step > 0, is_empty, chunk > 0 ? (uint64_t)chunk : 1);
}

static inline struct span span_of_ull(bool is_up, uint64_t start, uint64_t end, uint64_t step, uint64_t chunk)
{
    bool is_empty = is_up ? start >= end : start <= end;
    return span_of(start, end, step, is_up, is_empty, chunk);
}

/* The value at which a unit begins; behind the last one the loop's end, which code for lastprivate compares with. */
static inline uint64_t value_at(const struct span *span, uint32_t unit)
{
    return unit == span->units ? span->end : span->start + unit * span->unit * span->step;
}

static inline uint64_t iterations_in(const struct span *span, const struct range *range)
{
    uint64_t end = range->end == span->units ? span->iterations : range->end * span->unit;
    return end - range->begin * span->unit;
}

#endif
