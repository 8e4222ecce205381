/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writing down what calls cost. No messages are sent, and nobody waits. */
#ifndef MPI_TALLY_H
#define MPI_TALLY_H

#include "base/ticks.h"
#include "layout.h"
#include "table.h"

/* The part of the file of this process; NULL if nothing is written down. */
extern struct mpi_process *tally_own;
extern struct mpi_file *tally_file;
/* Several threads may call MPI at the same time. */
extern bool tally_is_shared;

/* After MPI_Init. */
void tally_begin(const struct mpi_table *table);
/* Before MPI_Finalize, and after it. */
void tally_end(void);
void tally_judge_rest(void);

/* A call. The peer is the rank to which a message was sent, the root of a collective, or -1. */
void tally_call(enum operation operation, uintptr_t communicator, uint64_t bytes, int peer, uint64_t begin, uint64_t end);
/* Takes memory for a part of the file. */
bool tally_reserve(const void *part, size_t bytes);
/* A communicator is freed; its handle may be another one's then. */
void tally_forget(uintptr_t communicator);

/* Is no communicator. */
enum { NO_COMMUNICATOR = 0 };

static inline void add_to(word *count, uint64_t more)
{
    if (__builtin_expect(tally_is_shared, false))
        atomic_fetch_add_explicit(count, more, memory_order_relaxed);
    else
        atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + more, memory_order_relaxed);
}

static inline uint64_t value_of(word *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static inline void set(word *count, uint64_t value)
{
    atomic_store_explicit(count, value, memory_order_relaxed);
}

#endif
