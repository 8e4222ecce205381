/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rest of calls.h: collectives that are timed, as a program calls them and as the MPI has them. */
#ifndef MPI_TIMED_H
#define MPI_TIMED_H

/* In the order of types.h. */
enum { FIRST_TYPE_IS_DOUBLE = 0, FIRST_OPERATION_IS_SUM = 0, SECOND_OPERATION_IS_MAX = 1 };

static void call_timed(int operation, bool is_own, double *in, double *out, int count)
{
    MPI_Datatype type = own.types[FIRST_TYPE_IS_DOUBLE].handle;
    MPI_Op sum = own.operations[FIRST_OPERATION_IS_SUM].handle;
    if (operation == SERVED_Barrier)
        (is_own ? Barrier : real.barrier)(real.world);
    else if (operation == SERVED_Bcast)
        (is_own ? Bcast : real.bcast)(in, count, type, 0, real.world);
    else if (operation == SERVED_Reduce)
        (is_own ? Reduce : real.reduce)(in, out, count, type, sum, 0, real.world);
    else
        (is_own ? Allreduce : real.allreduce)(in, out, count, type, sum, real.world);
}

static double largest(double number)
{
    double all = number;
    Allreduce(&number, &all, 1, own.types[FIRST_TYPE_IS_DOUBLE].handle, own.operations[SECOND_OPERATION_IS_MAX].handle,
              real.world);
    return all;
}

#endif
