/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The machine's table: where collectives of this library take less time than those of an MPI. A line has an operation, the least
 * and the largest number of ranks, the largest number of bytes, and how the text of MPI_Get_library_version begins:
 *     Allreduce 2 8 1024 Open MPI v5.0.11
 * Nothing pays that no line has. Lines that measure.h describes say that something was measured. */
#ifndef MPI_PAYS_H
#define MPI_PAYS_H

#include "attendance.h"

/* Reads the lines of this MPI; how many there are. */
uint64_t pays_read(const char *path, const char *library, struct row rows[ROWS]);
/* Why a table has nothing for an MPI_COMM_WORLD with this number of ranks; NULL if it has. `path` may be NULL. */
const char *pays_lack(const char *path, const char *library, int ranks);
/* Up to how many bytes it pays, -1 if it never does. */
int pays_up_to(const struct shared *shared, enum served operation, int ranks);

#endif
