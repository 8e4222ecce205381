/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sampled blocks that live, by address: a table in which nobody waits. */
#ifndef COUNT_LIVES_H
#define COUNT_LIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct life {
    uint64_t begin_ticks, begin_bytes;
    uint32_t weight;      /* how many blocks it stands for, in 1/1024 */
    uint32_t site;        /* plus one; 0 without one */
};

/* The bytes of the table; 0 without memory. */
size_t lives_begin(void);
/* False without room. */
bool lives_add(void *block, struct life life);
/* False if the block is not sampled. */
bool lives_end(void *block, struct life *life);
/* Whether a quarter of the table is in use: fewer should be sampled. */
bool lives_are_many(void);

#endif
