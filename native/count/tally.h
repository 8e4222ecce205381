/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counting: all sizes, and of sampled blocks their lives and call chains. Nothing here waits or allocates. */
#ifndef COUNT_TALLY_H
#define COUNT_TALLY_H

#include "layout.h"
#include <stdbool.h>
#include <stddef.h>

enum taking { BY_MALLOC, BY_CALLOC, BY_ALIGNED, BY_REALLOC };

/* Of a thread. */
struct counter {
    struct count_shard *shard;
    uintptr_t inside;     /* the frame of the function of this library that calls the allocator */
    uintptr_t caller;     /* behind the call of it */
    int64_t gap;          /* bytes until the next sampled block */
    uint64_t random;
    uint64_t cpu;         /* CPU time of the thread when it was last looked at, in ns */
};

/* The file; NULL where nothing is counted. */
extern struct count_file *counts;

/* Looks for the file; the first call of a program may come before the constructors. */
void tally_begin(void);
/* In a constructor, since the loader is asked for what finds call chains. */
void tally_begin_chains(void);

/* Notes the ticks of a call that its times do not contain. */
void tally_outside(uint64_t ticks);

/* That of the calling thread, and NULL if nothing is counted. */
struct counter *counter_here(void);

/* A block that the allocator gave, or NULL. */
void tally_taken(struct counter *counter, enum taking how, void *block, size_t bytes);

/* What a block was: to be forgotten before it is freed, since another thread may get its address at once. */
struct gone {
    size_t usable;
    bool is_sampled;
    uint32_t weight, site;
    uint64_t begin_ticks, begin_bytes;
};
struct gone tally_forget(void *block);
/* It was freed; or it was not, after all. */
void tally_gave(struct counter *counter, const struct gone *gone);
void tally_kept(void *block, const struct gone *gone);

/* How much of these ticks until now the thread ran: in a long time it may have waited for a CPU. What it ran since its CPU time
 * was last looked at is the limit. */
uint64_t tally_ran(struct counter *counter, uint64_t took);
/* Looks at the CPU time, before what may take long. */
void tally_look(struct counter *counter);

static inline void add(word *count, uint64_t more)
{
    atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

#endif
