/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares an ABI as this library declares it with the header of the MPI: a type that is declared again must be the same one. */
#define _GNU_SOURCE
#include <mpi.h>
#include "abi.h"
#include "mpi/types.h"
#include <dlfcn.h>
#include <stdio.h>

static int failed;

static void expect(const char *what, int holds)
{
    if (!holds)
        printf("%s is another one\n", what);
    failed |= !holds;
}

static void *find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

#define EXPECT_TYPE(name, kinds, symbol, mpich, standard)                                                              \
    expect("MPI_" #name, ABI_TYPE(find, symbol, mpich, standard) == MPI_##name);
#define EXPECT_OPERATION(name, kinds, symbol, mpich, standard)                                                         \
    expect("MPI_" #name, ABI_OPERATION(find, symbol, mpich, standard) == MPI_##name);

int main(void)
{
    static const int LEVELS[] = ABI_THREAD_LEVELS;
    (void)find;
    expect("MPI_COMM_WORLD", ABI_COMM_WORLD(find) == MPI_COMM_WORLD);
    expect("MPI_DATATYPE_NULL", ABI_DATATYPE_NULL(find) == MPI_DATATYPE_NULL);
    expect("MPI_COMM_NULL", ABI_COMM_NULL(find) == MPI_COMM_NULL);
    expect("MPI_STATUS_IGNORE", ABI_STATUS_IGNORE == (void *)MPI_STATUS_IGNORE);
    PLAIN_TYPES(EXPECT_TYPE)
    PLAIN_OPERATIONS(EXPECT_OPERATION)
    expect("MPI_IN_PLACE", ABI_IN_PLACE == MPI_IN_PLACE);
    expect("MPI_PROC_NULL", MPI_PROC_NULL < 0);
    expect("MPI_SUCCESS", MPI_SUCCESS == 0);
    expect("MPI_MAX_LIBRARY_VERSION_STRING", MPI_MAX_LIBRARY_VERSION_STRING <= 8192);
    expect("MPI_MAX_OBJECT_NAME", MPI_MAX_OBJECT_NAME <= 256);
    expect("MPI_BOTTOM", MPI_BOTTOM == NULL);
    expect("thread levels", LEVELS[0] == MPI_THREAD_SINGLE && LEVELS[1] == MPI_THREAD_FUNNELED &&
                                LEVELS[2] == MPI_THREAD_SERIALIZED && LEVELS[3] == MPI_THREAD_MULTIPLE);
    return failed;
}
