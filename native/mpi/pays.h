/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The machine's table: where collectives of this library take less time than those of an MPI. A line has an operation, the least
 * and the largest number of ranks, the largest number of bytes, and how the text of MPI_Get_library_version begins:
 *     Allreduce 2 8 1024 Open MPI v5.0.11
 * Nothing pays that no line has. */
#ifndef MPI_PAYS_H
#define MPI_PAYS_H

#include "attendance.h"

/* Reads the lines of this MPI; how many there are. */
uint64_t pays_read(const char *path, const char *library, struct row rows[ROWS]);
/* Up to how many bytes it pays, -1 if it never does. */
int pays_up_to(const struct shared *shared, enum served operation, int ranks);

#endif
