/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CHECK_MPI_H
#define CHECK_MPI_H

#include <dlfcn.h>
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

/* A function of the MPI itself, whose name libraries may stand in for. */
static void *of_the_mpi(const char *name)
{
    static void *library;
    Dl_info about;
    /* Nothing stands in for this one. */
    if (!library && dladdr((void *)PMPI_Get_library_version, &about))
        library = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    void *function = library ? dlsym(library, name) : NULL;
    expect(name, function != NULL);
    return function;
}
#define OF_THE_MPI(name)                                                                                               \
    ({                                                                                                                 \
        static __typeof__(&name) found;                                                                                \
        found ? found : (found = (__typeof__(found))of_the_mpi(#name));                                                \
    })

#endif
