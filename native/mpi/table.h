/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions of this library for one ABI of MPI, which calls.c is compiled to for each. The MPI in the process decides which
 * is used. */
#ifndef MPI_TABLE_H
#define MPI_TABLE_H

#include "functions.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function of any type. */
typedef void any_function(void);

#define AS_FIELD(name, lower, count) any_function *name;
#define AS_FORTRAN_FIELD(name, lower, count) any_function *f_##lower;
#define AS_OWN_FIELD(name, lower, count) any_function *p_##name;
#define AS_LARGE_FIELD(name, lower, count) any_function *name##_c, *p_##name##_c;

struct described {
    int rank, size;
    bool is_inter;
    int others;             /* the size of the group that messages go to */
    int *world;             /* the ranks in MPI_COMM_WORLD of that group; -1: not in it. Of os_allocate */
    char name[80];
};

struct mpi_table {
    FUNCTIONS(AS_FIELD)
    FUNCTIONS(AS_FORTRAN_FIELD)
    OWN_NAMES(AS_OWN_FIELD)
    LARGE_NAMES(AS_LARGE_FIELD)
    int number;
    /* Looks up the functions of this MPI, by their names. */
    void (*begin)(void *(*find)(const char *name));
    /* Describes a communicator, by local calls only. False if the MPI refuses. */
    bool (*describe)(uintptr_t handle, struct described *described);
    void (*version)(char *text, int bytes);
    int (*thread_level)(void);
    uintptr_t (*world)(void);
    /* For collectives of this library. Ranks of a communicator; 0 of one between two groups, or if the MPI refuses. */
    int (*size)(uintptr_t handle);
    int (*rank)(uintptr_t handle);
    /* The ranks in MPI_COMM_WORLD of its ranks; none is less than 0 but of those that are not in it. */
    bool (*members)(uintptr_t handle, int size, int *ranks);
    /* Whether this MPI has all functions that are needed. */
    bool (*can_serve)(void);
    /* From now on the program's collectives are those of own.h. */
    void (*serve)(void);
    /* Sends bytes from the first rank to the others, by the MPI. */
    bool (*agree)(uintptr_t handle, void *data, size_t bytes);
    /* What is kept with a communicator, NULL if nothing is. False if the MPI refuses, as for a handle that is none. */
    bool (*kept)(uintptr_t handle, void **value);
    bool (*keep)(uintptr_t handle, void *value);
    /* To measure what collectives cost, on MPI_COMM_WORLD, after serve(): one with values of 8 bytes from the first rank or to it, this
     * library's or the MPI's; the largest number of all ranks, by this library. */
    void (*call)(int operation, bool is_own, double *in, double *out, int count);
    double (*largest)(double number);
    /* MPI_Finalize. */
    void (*finish)(void);
    /* Ends all ranks. */
    void (*abort)(const char *text);
};

extern const struct mpi_table table_openmpi, table_mpich, table_standard;

/* The one for the MPI in this process; NULL if there is none. */
const struct mpi_table *table_here(void);

#endif
