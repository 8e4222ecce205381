/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The communicators of this process, by their handles. */
#ifndef MPI_COMMUNICATORS_H
#define MPI_COMMUNICATORS_H

#include "layout.h"
#include "table.h"

/* A collective call whose waiting is not yet known. */
struct past {
    uint64_t begin, took;
    uint32_t cell;
    uint16_t operation;
    int root;
};

struct communicator {
    uint32_t place;         /* in this process's part of the file */
    int rank, size, others;
    const int *world;       /* the ranks of its group in MPI_COMM_WORLD, -1 elsewhere; NULL: none is known */
    bool is_live;
    uint64_t members;       /* a number for its ranks, in their order */
    uint64_t key;           /* the same in all ranks */
    uint64_t calls;         /* of collectives */
    uint64_t judged;        /* all batches before this one are done */
    word *arrivals;         /* a ring for each rank; NULL: not yet, or never */
    struct past past[RING];
};

void communicators_begin(const struct mpi_table *table, uint64_t job);

/* That of a handle; the one for all others if there is no room for it, or the MPI refuses to describe it. */
struct communicator *communicator_of(uintptr_t handle);
void communicator_forget(uintptr_t handle);

/* Calls the function for each that was used. */
void communicators_each(void (*function)(struct communicator *communicator));

#endif
