/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which collectives are this library's, and those of which communicators. */
#ifndef MPI_COLLECTIVES_H
#define MPI_COLLECTIVES_H

#include "table.h"
#include "team.h"

/* What is known of a communicator; the MPI keeps it with the communicator, and gives it back when that is freed. */
struct served_communicator;

/* Before MPI_Init. Nothing happens unless the user asks for it. */
void collectives_come(const struct mpi_table *table);
/* After MPI_Init. */
void collectives_begin(const struct mpi_table *table);
/* Before MPI_Finalize. */
void collectives_end(void);

/* The team that makes this call, of at most LARGEST bytes; NULL: the call is the MPI's. All ranks of the communicator get the same
 * answer in the same call. */
struct team *collectives_team(uintptr_t handle, enum served operation, size_t bytes);
/* A communicator is freed. */
void collectives_forget(uintptr_t handle, void *kept);

#endif
