/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sets of CPUs, and lists of numbers. Nothing is allocated. */
#ifndef CPUS_H
#define CPUS_H

#include <stdbool.h>
#include <stddef.h>

/* The maximum that Linux supports. */
enum { MAX_CPUS = 8192, MAX_NODES = 1024, WORD = 8 * sizeof(long) };

/* In the layout of the kernel and of cpu_set_t. */
struct cpus {
    unsigned long words[MAX_CPUS / WORD];
};

static inline void cpus_add(struct cpus *cpus, int cpu)
{
    cpus->words[cpu / WORD] |= 1UL << cpu % WORD;
}

static inline bool cpus_has(const struct cpus *cpus, int cpu)
{
    return cpus->words[cpu / WORD] >> cpu % WORD & 1;
}

/* The number of CPUs, but 2 for more than one; `only` becomes the first one, or -1. */
int cpus_count(const struct cpus *cpus, int *only);

/* Whether every CPU of `few` is in `many`. */
bool cpus_within(const struct cpus *few, const struct cpus *many);

/* Parses the next range of a list such as "0-2,5", up to the end, a comma or `stop`; `*text` then points
 * after the comma, to `stop` or to the end. False, with nothing changed, for anything else and for numbers
 * from `limit` on. */
bool list_next(const char **text, char stop, int limit, int *first, int *last);

/* Whether the whole text is a number below `limit`. */
bool number_read(const char *text, int limit, int *number);

#endif
