/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What of Open MPI's mpi.h is needed, versions 1.7 to 6: handles are pointers to objects of its library. */
#ifndef ABI_H
#define ABI_H

#define ABI_NUMBER 1
#define ABI_TABLE table_openmpi
typedef struct ompi_communicator_t *MPI_Comm;
typedef struct ompi_datatype_t *MPI_Datatype;
typedef struct ompi_group_t *MPI_Group;
typedef struct ompi_op_t *MPI_Op;
typedef struct ompi_request_t *MPI_Request;
#define ABI_COMM_WORLD(find) ((MPI_Comm)find("ompi_mpi_comm_world"))
#define ABI_COMM_NULL(find) ((MPI_Comm)find("ompi_mpi_comm_null"))
#define ABI_DATATYPE_NULL(find) ((MPI_Datatype)find("ompi_mpi_datatype_null"))
#define ABI_IN_PLACE ((void *)1)
/* MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE. */
#define ABI_THREAD_LEVELS {0, 1, 2, 3}
/* Its functions for Fortran call PMPI_*, which nothing stands in for. */
#define ABI_FORTRAN_IS_SEPARATE true
#define ABI_STATUS_IGNORE ((void *)0)
/* Of types.h. */
#define ABI_TYPE(find, symbol, mpich, standard) ((MPI_Datatype)find("ompi_mpi_" #symbol))
#define ABI_OPERATION(find, symbol, mpich, standard) ((MPI_Op)find("ompi_mpi_op_" #symbol))

#endif
