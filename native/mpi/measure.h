/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What collectives of this library take, and those of the MPI, on MPI_COMM_WORLD: `numa bench mpi`. Rank 0 adds the result to the file of
 * NUMAMPI_TABLE, in lines such as
 *     measured Allreduce 8 1024 51 540000 590000 660000 200000 210000 260000 341000 370000 402000 Open MPI v5.0.11
 *     Allreduce 8 8 1024 Open MPI v5.0.11
 * The first has the operation, the number of ranks, the bytes, how often both were measured, 10 % quantile, median and 90 % quantile of the
 * MPI's time and of this library's in picoseconds, those of this library's time as millionths of the MPI's, and the MPI. The second is
 * one of the machine's table (pays.h). */
#ifndef MPI_MEASURE_H
#define MPI_MEASURE_H

#include "table.h"

/* In all ranks, where this library's collectives are in place; `library` is the text of MPI_Get_library_version. Ends the process. */
_Noreturn void measure(const struct mpi_table *mpi, const char *library, int rank, int size);

/* In a rank that cannot measure, before it says so to the others: adds the line `refused REASON` to the file. */
void measure_refused(const char *reason);

#endif
