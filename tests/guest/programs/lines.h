/* Loops over cache lines with one access for each line and nothing else in memory, so that what is
 * counted is the lines. Sizes are multiples of a line. */
#ifndef LINES_H
#define LINES_H

#include <stddef.h>
#include <stdint.h>

enum { LINE = 64 };

static inline uint64_t read_lines(const void *memory, size_t bytes)
{
    uint64_t sum = 0;
    for (size_t at = 0; at < bytes; at += LINE)
        sum += *(const volatile uint64_t *)((const char *)memory + at);
    return sum;
}

static inline void write_lines(void *memory, size_t bytes, uint64_t value)
{
    for (size_t at = 0; at < bytes; at += LINE)
        *(volatile uint64_t *)((char *)memory + at) = value;
}

/* A read and a write of every line. */
static inline void increment_lines(void *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += LINE)
        ++*(volatile uint64_t *)((char *)memory + at);
}

#endif
