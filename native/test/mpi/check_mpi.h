/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CHECK_MPI_H
#define CHECK_MPI_H

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static inline void expect(const char *what, int holds)
{
    if (holds)
        return;
    printf("rank %d of %d: %s is wrong\n", rank, size, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void begin_mpi(int with_threads)
{
    int provided;
    MPI_Init_thread(NULL, NULL, with_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

#endif
