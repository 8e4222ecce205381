/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rest of calls.h: other names of this library's collectives. The ranks of one call may use different names, and would wait
 * for each other if only some of them were this library's. */
#ifndef MPI_NAMES_H
#define MPI_NAMES_H

/* With a large count, each as programs call it and by the MPI's own name. */
static struct {
    LARGE_NAMES(AS_LARGE_FIELD)
} large;

enum { MPI_ERR_COUNT = 2 };

/* The MPI's own name, which mpi_f08 of MPICH and libraries that watch calls use. It is not counted in the report, where the call
 * for which they make it may be. */
#define BY_OWN_NAME(name, lower, serve, takes, gives)                                                                  \
    static int p_##name takes(int)                                                                                     \
    {                                                                                                                  \
        return own.name && own.passed == 0 && serve gives(count) ? 0 : real.lower gives(count);                        \
    }
#define WITH_LARGE_COUNT(name, takes, gives)                                                                           \
    static int name##_c takes(int64_t)                                                                                 \
    {                                                                                                                  \
        if (count == (int)count)                                                                                       \
            return name gives((int)count);                                                                             \
        return large.name##_c ? ((__typeof__(&name##_c))large.name##_c)gives(count) : MPI_ERR_COUNT;                   \
    }                                                                                                                  \
    static int p_##name##_c takes(int64_t)                                                                             \
    {                                                                                                                  \
        if (count == (int)count)                                                                                       \
            return p_##name gives((int)count);                                                                         \
        return large.p_##name##_c ? ((__typeof__(&name##_c))large.p_##name##_c)gives(count) : MPI_ERR_COUNT;           \
    }

#define BARRIER_TAKES(integer) (MPI_Comm comm)
#define BARRIER_GIVES(count) (comm)
BY_OWN_NAME(Barrier, barrier, barrier, BARRIER_TAKES, BARRIER_GIVES)

#define BCAST_TAKES(integer) (void *buffer, integer count, MPI_Datatype type, int root, MPI_Comm comm)
#define BCAST_GIVES(count) (buffer, count, type, root, comm)
BY_OWN_NAME(Bcast, bcast, broadcast, BCAST_TAKES, BCAST_GIVES)
WITH_LARGE_COUNT(Bcast, BCAST_TAKES, BCAST_GIVES)

#define REDUCE_TAKES(integer) (const void *in, void *out, integer count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
#define REDUCE_GIVES(count) (in, out, count, type, op, root, comm)
BY_OWN_NAME(Reduce, reduce, reduce, REDUCE_TAKES, REDUCE_GIVES)
WITH_LARGE_COUNT(Reduce, REDUCE_TAKES, REDUCE_GIVES)

#define ALLREDUCE_TAKES(integer) (const void *in, void *out, integer count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
#define ALLREDUCE_GIVES(count) (in, out, count, type, op, comm)
BY_OWN_NAME(Allreduce, allreduce, allreduce, ALLREDUCE_TAKES, ALLREDUCE_GIVES)
WITH_LARGE_COUNT(Allreduce, ALLREDUCE_TAKES, ALLREDUCE_GIVES)

#endif
