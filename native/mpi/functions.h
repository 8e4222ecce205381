/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions of MPI that are counted, each with its name in Fortran and the number of its arguments in C; in Fortran there is
 * one more, the error. The order is that of operations in the file: crates/sys/src/mpi_calls/operation.rs has the same. */
#ifndef MPI_FUNCTIONS_H
#define MPI_FUNCTIONS_H

/* How long a call waits for others is known of collectives only. */
#define MESSAGES(DO)                                                                                                   \
    DO(Send, send, 6) DO(Bsend, bsend, 6) DO(Ssend, ssend, 6) DO(Rsend, rsend, 6)                                      \
    DO(Isend, isend, 7) DO(Ibsend, ibsend, 7) DO(Issend, issend, 7) DO(Irsend, irsend, 7)                              \
    DO(Recv, recv, 7) DO(Irecv, irecv, 7)                                                                              \
    DO(Sendrecv, sendrecv, 12) DO(Sendrecv_replace, sendrecv_replace, 9)                                               \
    DO(Wait, wait, 2) DO(Waitall, waitall, 3) DO(Waitany, waitany, 4) DO(Waitsome, waitsome, 5) DO(Probe, probe, 4)
#define COLLECTIVES(DO)                                                                                                \
    DO(Barrier, barrier, 1) DO(Bcast, bcast, 5) DO(Reduce, reduce, 7) DO(Allreduce, allreduce, 6)                      \
    DO(Reduce_scatter, reduce_scatter, 6) DO(Reduce_scatter_block, reduce_scatter_block, 6)                            \
    DO(Scan, scan, 6) DO(Exscan, exscan, 6)                                                                            \
    DO(Gather, gather, 8) DO(Gatherv, gatherv, 9) DO(Scatter, scatter, 8) DO(Scatterv, scatterv, 9)                    \
    DO(Allgather, allgather, 7) DO(Allgatherv, allgatherv, 8) DO(Alltoall, alltoall, 7) DO(Alltoallv, alltoallv, 9)
#define OPERATIONS(DO) MESSAGES(DO) COLLECTIVES(DO)

/* Wrapped, and no operation of a program. */
#define MANAGEMENT(DO)                                                                                                 \
    DO(Init, init, 2) DO(Init_thread, init_thread, 4) DO(Finalize, finalize, 0) DO(Comm_free, comm_free, 1)            \
    DO(Comm_disconnect, comm_disconnect, 1)
#define FUNCTIONS(DO) OPERATIONS(DO) MANAGEMENT(DO)

/* Those that this library may have in place of the MPI; each has a second name for large counts but the barrier. */
#define LARGE_NAMES(DO) DO(Bcast, bcast, 5) DO(Reduce, reduce, 7) DO(Allreduce, allreduce, 6)
#define OWN_NAMES(DO) DO(Barrier, barrier, 1) LARGE_NAMES(DO)

#define AS_OPERATION(name, lower, count) OP_##name,
enum operation { OPERATIONS(AS_OPERATION) OPERATION_COUNT };

#endif
