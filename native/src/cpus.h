/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sets of CPUs and the lists that name them. No memory is allocated and nothing else is touched. */
#ifndef CPUS_H
#define CPUS_H

#include <stdbool.h>
#include <stddef.h>

/* As many as Linux supports. */
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

/* How many there are, 2 for all above one; `only` becomes the first, -1 of none. */
int cpus_count(const struct cpus *cpus, int *only);

/* Whether every CPU of `few` is in `many`. */
bool cpus_within(const struct cpus *few, const struct cpus *many);

/* Takes the next number off a list such as "0-2,5": a range at `*text` that ends at the end, at a
 * comma or at `stop` gives first and last, and `*text` stands behind the comma, at `stop` or at the
 * end. False, with nothing changed, for anything else and for numbers of `most` and above. */
bool list_next(const char **text, char stop, int most, int *first, int *last);

/* Whether all of the text is a number below `most`. */
bool number_read(const char *text, int most, int *number);

#endif
