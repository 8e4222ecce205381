/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What programs call. The arguments are passed on as they came: integers and pointers take a register or eight bytes of the
 * stack each on all processors that this library is built for, so one function does for all ABIs. */
#define _GNU_SOURCE
#include "base/next.h"
#include "os.h"
#include "table.h"

#define TAKE_0 void
#define TAKE_1 long a
#define TAKE_2 TAKE_1, long b
#define TAKE_3 TAKE_2, long c
#define TAKE_4 TAKE_3, long d
#define TAKE_5 TAKE_4, long e
#define TAKE_6 TAKE_5, long f
#define TAKE_7 TAKE_6, long g
#define TAKE_8 TAKE_7, long h
#define TAKE_9 TAKE_8, long i
#define TAKE_10 TAKE_9, long j
#define TAKE_11 TAKE_10, long k
#define TAKE_12 TAKE_11, long l
#define TAKE_13 TAKE_12, long m
#define GIVE_0
#define GIVE_1 a
#define GIVE_2 GIVE_1, b
#define GIVE_3 GIVE_2, c
#define GIVE_4 GIVE_3, d
#define GIVE_5 GIVE_4, e
#define GIVE_6 GIVE_5, f
#define GIVE_7 GIVE_6, g
#define GIVE_8 GIVE_7, h
#define GIVE_9 GIVE_8, i
#define GIVE_10 GIVE_9, j
#define GIVE_11 GIVE_10, k
#define GIVE_12 GIVE_11, l
#define GIVE_13 GIVE_12, m
#define MORE_0 TAKE_1
#define MORE_1 TAKE_2
#define MORE_2 TAKE_3
#define MORE_3 TAKE_4
#define MORE_4 TAKE_5
#define MORE_5 TAKE_6
#define MORE_6 TAKE_7
#define MORE_7 TAKE_8
#define MORE_8 TAKE_9
#define MORE_9 TAKE_10
#define MORE_12 TAKE_13
#define AND_0 GIVE_1
#define AND_1 GIVE_2
#define AND_2 GIVE_3
#define AND_3 GIVE_4
#define AND_4 GIVE_5
#define AND_5 GIVE_6
#define AND_6 GIVE_7
#define AND_7 GIVE_8
#define AND_8 GIVE_9
#define AND_9 GIVE_10
#define AND_12 GIVE_13


static int no_mpi(const char *text)
{
    /* MPI_ERR_OTHER of most. */
    enum { OTHER = 15 };
    os_print("libnumampi.so: there is no MPI library in this process, whose function was called: ");
    os_print(text);
    os_print("\n");
    return OTHER;
}

#define ENTRY(symbol, field, count)                                                                                    \
    PUBLIC int symbol(TAKE_##count);                                                                                   \
    PUBLIC int symbol(TAKE_##count)                                                                                    \
    {                                                                                                                  \
        const struct mpi_table *table = table_here();                                                                  \
        if (!table)                                                                                                    \
            return no_mpi(#symbol);                                                                                    \
        return ((__typeof__(&symbol))table->field)(GIVE_##count);                                                      \
    }
#define C_FUNCTION(name, lower, count) ENTRY(MPI_##name, name, count)
#define OWN_NAME(name, lower, count) ENTRY(PMPI_##name, p_##name, count)
#define LARGE_NAME(name, lower, count)                                                                                 \
    ENTRY(MPI_##name##_c, name##_c, count)                                                                             \
    ENTRY(PMPI_##name##_c, p_##name##_c, count)
FUNCTIONS(C_FUNCTION)
OWN_NAMES(OWN_NAME)
LARGE_NAMES(LARGE_NAME)

/* Where the MPI's functions for Fortran call those above, they are only passed on to. The module mpi_f08 of Open MPI calls
 * the second name. */
#define FORTRAN_FUNCTION(lower, count)                                                                                 \
    PUBLIC void mpi_##lower##_(MORE_##count);                                                                          \
    PUBLIC void mpi_##lower##_(MORE_##count)                                                                           \
    {                                                                                                                  \
        static struct next next = {"mpi_" #lower "_", NULL};                                                           \
        const struct mpi_table *table = table_here();                                                                  \
        __typeof__(&mpi_##lower##_) function = NULL;                                                                   \
        if (table)                                                                                                     \
            function = (__typeof__(function))(table->f_##lower ? (void *)table->f_##lower : next_function(&next));     \
        if (function)                                                                                                  \
            function(AND_##count);                                                                                     \
        else                                                                                                           \
            no_mpi("mpi_" #lower);                                                                                     \
    }                                                                                                                  \
    PUBLIC void ompi_##lower##_f(MORE_##count) __attribute__((alias("mpi_" #lower "_")));
#define OPERATION_IN_FORTRAN(name, lower, count) FORTRAN_FUNCTION(lower, count)
OPERATIONS(OPERATION_IN_FORTRAN)
FORTRAN_FUNCTION(init, 0)
FORTRAN_FUNCTION(init_thread, 2)
FORTRAN_FUNCTION(finalize, 0)
FORTRAN_FUNCTION(comm_free, 1)
FORTRAN_FUNCTION(comm_disconnect, 1)
