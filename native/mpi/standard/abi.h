/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What of the standard ABI of MPI 5 is needed: handles are pointers, and those of constants are small numbers. */
#ifndef ABI_H
#define ABI_H

#define ABI_NUMBER 3
#define ABI_TABLE table_standard
typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Request *MPI_Request;
#define ABI_COMM_WORLD(find) ((MPI_Comm)0x101)
#define ABI_COMM_NULL(find) ((MPI_Comm)0x100)
#define ABI_DATATYPE_NULL(find) ((MPI_Datatype)0x200)
#define ABI_IN_PLACE ((void *)1)
#define ABI_THREAD_LEVELS {0, 1024, 2048, 4096}
#define ABI_FORTRAN_IS_SEPARATE false
#define ABI_STATUS_IGNORE ((void *)0)
/* Of types.h. */
#define ABI_TYPE(find, symbol, mpich, standard) ((MPI_Datatype)(standard))
#define ABI_OPERATION(find, symbol, mpich, standard) ((MPI_Op)(standard))

#endif
