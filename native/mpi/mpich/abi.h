/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What of the mpi.h of MPICH is needed, which MVAPICH, Intel MPI and Cray MPI share: handles are numbers. */
#ifndef ABI_H
#define ABI_H

#define ABI_NUMBER 2
#define ABI_TABLE table_mpich
typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Group;
typedef int MPI_Op;
typedef int MPI_Request;
#define ABI_COMM_WORLD(find) ((MPI_Comm)0x44000000)
#define ABI_COMM_NULL(find) ((MPI_Comm)0x04000000)
#define ABI_DATATYPE_NULL(find) ((MPI_Datatype)0x0c000000)
#define ABI_IN_PLACE ((void *)-1)
#define ABI_THREAD_LEVELS {0, 1, 2, 3}
/* Its functions for Fortran call MPI_*. */
#define ABI_FORTRAN_IS_SEPARATE false
#define ABI_STATUS_IGNORE ((void *)1)
/* Of types.h. */
#define ABI_TYPE(find, symbol, mpich, standard) ((MPI_Datatype)(mpich))
#define ABI_OPERATION(find, symbol, mpich, standard) ((MPI_Op)(mpich))

#endif
