/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions that programs call in place of those of MPI: one source for all ABIs, which calls.c of each includes behind its
 * abi.h. Each calls the function of the MPI with the program's arguments between two readings of the clock, and writes down
 * what it cost. */
#ifndef MPI_CALLS_H
#define MPI_CALLS_H

#include "mpi/os.h"
#include "mpi/table.h"
#include "mpi/tally.h"
#include <stddef.h>
#include <string.h>

typedef struct opaque MPI_Status;

/* Those of the MPI, and those that only this library calls. */
static struct {
    FUNCTIONS(AS_FIELD)
    FUNCTIONS(AS_FORTRAN_FIELD)
    int (*type_size)(MPI_Datatype, int *);
    int (*comm_rank)(MPI_Comm, int *);
    int (*comm_size)(MPI_Comm, int *);
    int (*comm_test_inter)(MPI_Comm, int *);
    int (*comm_group)(MPI_Comm, MPI_Group *);
    int (*comm_remote_group)(MPI_Comm, MPI_Group *);
    int (*comm_get_name)(MPI_Comm, char *, int *);
    int (*group_size)(MPI_Group, int *);
    int (*group_translate_ranks)(MPI_Group, int, const int *, MPI_Group, int *);
    int (*group_free)(MPI_Group *);
    int (*get_library_version)(char *, int *);
    int (*query_thread)(int *);
    /* For collectives of this library. */
    int (*iprobe)(int, int, MPI_Comm, int *, void *);
    int (*abort)(MPI_Comm, int);
    int (*comm_get_attr)(MPI_Comm, int, void *, int *);
    int (*comm_set_attr)(MPI_Comm, int, void *);
    int (*comm_create_keyval)(int (*)(MPI_Comm, int, void *, void *, void *, int *), int (*)(MPI_Comm, int, void *, void *), int *,
                              void *);
    int (*bcast)(void *, int, MPI_Datatype, int, MPI_Comm);
    /* To be timed beside those of this library. */
    int (*barrier)(MPI_Comm);
    int (*reduce)(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int (*pack)(const void *, int, MPI_Datatype, void *, int, int *, MPI_Comm);
    int (*unpack)(const void *, int, int *, void *, int, MPI_Datatype, MPI_Comm);
    int (*reduce_local)(const void *, void *, int, MPI_Datatype, MPI_Op);
    MPI_Op (*op_f2c)(int);
    MPI_Comm (*comm_f2c)(int);
    MPI_Datatype (*type_f2c)(int);
    MPI_Comm world;
    MPI_Datatype no_type;
    const void *fortran_in_place[4];
} real;

static uint64_t bytes_of(int count, MPI_Datatype type)
{
    int size = 0;
    if (count <= 0 || type == real.no_type || real.type_size(type, &size) || size < 0)
        return 0;
    return (uint64_t)count * (uint64_t)size;
}

static bool is_in_place(const void *buffer)
{
    if (buffer == ABI_IN_PLACE)
        return true;
    for (size_t i = 0; i < sizeof real.fortran_in_place / sizeof *real.fortran_in_place; i++)
        if (buffer && buffer == real.fortran_in_place[i])
            return true;
    return false;
}

static int rank_in(MPI_Comm comm)
{
    int rank = 0;
    return real.comm_rank(comm, &rank) == 0 ? rank : -1;
}

static uint64_t sum_of(const int *counts, MPI_Comm comm, MPI_Datatype type)
{
    int size = 0;
    uint64_t each = bytes_of(1, type), sum = 0;
    if (each == 0 || real.comm_size(comm, &size))
        return 0;
    for (int i = 0; i < size; i++)
        sum += counts[i] > 0 ? (uint64_t)counts[i] : 0;
    return sum * each;
}

/* What this rank gives to a gather, or takes from a scatter; the other side has it where the call is in place. */
static uint64_t part_of(const void *own, int own_count, MPI_Datatype own_type, int count, MPI_Datatype type)
{
    return is_in_place(own) ? bytes_of(count, type) : bytes_of(own_count, own_type);
}

static uint64_t part_of_counts(const void *own, int own_count, MPI_Datatype own_type, const int *counts,
                               MPI_Datatype type, MPI_Comm comm)
{
    if (!is_in_place(own))
        return bytes_of(own_count, own_type);
    int rank = rank_in(comm);
    return rank < 0 ? 0 : bytes_of(counts[rank], type);
}

/* MPI_PROC_NULL is a negative number in each ABI. */
static uint64_t bytes_to(int count, MPI_Datatype type, int peer)
{
    return peer < 0 ? 0 : bytes_of(count, type);
}

#define COMM(handle) ((uintptr_t)(handle))
#define NOTE(name, comm, bytes, peer) tally_call(OP_##name, comm, bytes, peer, begin, end)

/* A function in C and its twin in Fortran. What is noted has the same words for both, since Fortran's arguments are given
 * the names of C's values there. */
#define WRAP(name, parameters, arguments, note)                                                                        \
    static int name parameters                                                                                         \
    {                                                                                                                  \
        int (*next) parameters = (__typeof__(next))real.name;                                                          \
        if (!tally_own)                                                                                                \
            return next arguments;                                                                                     \
        uint64_t begin = ticks();                                                                                      \
        int result = next arguments;                                                                                   \
        uint64_t end = ticks();                                                                                        \
        if (result == 0)                                                                                               \
            note;                                                                                                      \
        return result;                                                                                                 \
    }
#define FORTRAN(name, lower, parameters, arguments, values, note)                                                      \
    static __attribute__((unused)) void f_##lower parameters                                                           \
    {                                                                                                                  \
        void (*next) parameters = (__typeof__(next))real.f_##lower;                                                    \
        if (!tally_own) {                                                                                              \
            next arguments;                                                                                            \
            return;                                                                                                    \
        }                                                                                                              \
        uint64_t begin = ticks();                                                                                      \
        next arguments;                                                                                                \
        uint64_t end = ticks();                                                                                        \
        if (error_ && *error_)                                                                                         \
            return;                                                                                                    \
        values note;                                                                                                   \
    }
#define C_COMM MPI_Comm comm = real.comm_f2c(*comm_);
#define C_TYPE MPI_Datatype type = real.type_f2c(*type_);
#define C_VALUE(name) int name = *name##_;

#define SENDS(name, lower)                                                                                             \
    WRAP(name, (const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm),                   \
         (buffer, count, type, peer, tag, comm), NOTE(name, COMM(comm), bytes_to(count, type, peer), peer))            \
    FORTRAN(name, lower, (void *buffer, int *count_, int *type_, int *peer_, int *tag, int *comm_, int *error_),       \
            (buffer, count_, type_, peer_, tag, comm_, error_), C_COMM C_TYPE C_VALUE(count) C_VALUE(peer),            \
            NOTE(name, COMM(comm), bytes_to(count, type, peer), peer))
SENDS(Send, send)
SENDS(Bsend, bsend)
SENDS(Ssend, ssend)
SENDS(Rsend, rsend)

#define STARTS(name, lower)                                                                                            \
    WRAP(name,                                                                                                         \
         (const void *buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request),   \
         (buffer, count, type, peer, tag, comm, request), NOTE(name, COMM(comm), bytes_to(count, type, peer), peer))   \
    FORTRAN(name, lower,                                                                                               \
            (void *buffer, int *count_, int *type_, int *peer_, int *tag, int *comm_, int *request, int *error_),      \
            (buffer, count_, type_, peer_, tag, comm_, request, error_),                                               \
            C_COMM C_TYPE C_VALUE(count) C_VALUE(peer), NOTE(name, COMM(comm), bytes_to(count, type, peer), peer))
STARTS(Isend, isend)
STARTS(Ibsend, ibsend)
STARTS(Issend, issend)
STARTS(Irsend, irsend)
#define NO_PEER -1
#define RECEIVES(name, lower, last)                                                                                    \
    WRAP(name, (void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, last *out),            \
         (buffer, count, type, source, tag, comm, out), NOTE(name, COMM(comm), bytes_of(count, type), NO_PEER))        \
    FORTRAN(name, lower,                                                                                               \
            (void *buffer, int *count_, int *type_, int *source, int *tag, int *comm_, int *out, int *error_),         \
            (buffer, count_, type_, source, tag, comm_, out, error_), C_COMM C_TYPE C_VALUE(count),                    \
            NOTE(name, COMM(comm), bytes_of(count, type), NO_PEER))
RECEIVES(Recv, recv, MPI_Status)
RECEIVES(Irecv, irecv, MPI_Request)

WRAP(Sendrecv,
     (const void *out, int count, MPI_Datatype type, int peer, int tag, void *in, int in_count, MPI_Datatype in_type,
      int source, int in_tag, MPI_Comm comm, MPI_Status *status),
     (out, count, type, peer, tag, in, in_count, in_type, source, in_tag, comm, status),
     NOTE(Sendrecv, COMM(comm), bytes_to(count, type, peer), peer))
FORTRAN(Sendrecv, sendrecv,
        (void *out, int *count_, int *type_, int *peer_, int *tag, void *in, int *in_count, int *in_type, int *source,
         int *in_tag, int *comm_, int *status, int *error_),
        (out, count_, type_, peer_, tag, in, in_count, in_type, source, in_tag, comm_, status, error_),
        C_COMM C_TYPE C_VALUE(count) C_VALUE(peer), NOTE(Sendrecv, COMM(comm), bytes_to(count, type, peer), peer))
WRAP(Sendrecv_replace,
     (void *buffer, int count, MPI_Datatype type, int peer, int tag, int source, int in_tag, MPI_Comm comm,
      MPI_Status *status),
     (buffer, count, type, peer, tag, source, in_tag, comm, status),
     NOTE(Sendrecv_replace, COMM(comm), bytes_to(count, type, peer), peer))
FORTRAN(Sendrecv_replace, sendrecv_replace,
        (void *buffer, int *count_, int *type_, int *peer_, int *tag, int *source, int *in_tag, int *comm_, int *status,
         int *error_),
        (buffer, count_, type_, peer_, tag, source, in_tag, comm_, status, error_),
        C_COMM C_TYPE C_VALUE(count) C_VALUE(peer),
        NOTE(Sendrecv_replace, COMM(comm), bytes_to(count, type, peer), peer))

/* Requests may be of several communicators. */
#define WAITED(name) NOTE(name, NO_COMMUNICATOR, 0, NO_PEER)
WRAP(Wait, (MPI_Request * request, MPI_Status *status), (request, status), WAITED(Wait))
FORTRAN(Wait, wait, (int *request, int *status, int *error_), (request, status, error_), , WAITED(Wait))
WRAP(Waitall, (int count, MPI_Request *requests, MPI_Status *statuses), (count, requests, statuses), WAITED(Waitall))
FORTRAN(Waitall, waitall, (int *count, int *requests, int *statuses, int *error_), (count, requests, statuses, error_), ,
        WAITED(Waitall))
WRAP(Waitany, (int count, MPI_Request *requests, int *index, MPI_Status *status), (count, requests, index, status),
     WAITED(Waitany))
FORTRAN(Waitany, waitany, (int *count, int *requests, int *index, int *status, int *error_),
        (count, requests, index, status, error_), , WAITED(Waitany))
WRAP(Waitsome, (int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses),
     (count, requests, done, indices, statuses), WAITED(Waitsome))
FORTRAN(Waitsome, waitsome, (int *count, int *requests, int *done, int *indices, int *statuses, int *error_),
        (count, requests, done, indices, statuses, error_), , WAITED(Waitsome))
WRAP(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status), (source, tag, comm, status),
     NOTE(Probe, COMM(comm), 0, NO_PEER))
FORTRAN(Probe, probe, (int *source, int *tag, int *comm_, int *status, int *error_), (source, tag, comm_, status, error_),
        C_COMM, NOTE(Probe, COMM(comm), 0, NO_PEER))

WRAP(Barrier, (MPI_Comm comm), (comm), NOTE(Barrier, COMM(comm), 0, NO_PEER))
FORTRAN(Barrier, barrier, (int *comm_, int *error_), (comm_, error_), C_COMM, NOTE(Barrier, COMM(comm), 0, NO_PEER))
WRAP(Bcast, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm), (buffer, count, type, root, comm),
     NOTE(Bcast, COMM(comm), bytes_of(count, type), root))
FORTRAN(Bcast, bcast, (void *buffer, int *count_, int *type_, int *root_, int *comm_, int *error_),
        (buffer, count_, type_, root_, comm_, error_), C_COMM C_TYPE C_VALUE(count) C_VALUE(root),
        NOTE(Bcast, COMM(comm), bytes_of(count, type), root))
WRAP(Reduce, (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
     (in, out, count, type, op, root, comm), NOTE(Reduce, COMM(comm), bytes_of(count, type), root))
FORTRAN(Reduce, reduce, (void *in, void *out, int *count_, int *type_, int *op, int *root_, int *comm_, int *error_),
        (in, out, count_, type_, op, root_, comm_, error_), C_COMM C_TYPE C_VALUE(count) C_VALUE(root),
        NOTE(Reduce, COMM(comm), bytes_of(count, type), root))

#define REDUCES(name, lower)                                                                                           \
    WRAP(name, (const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),                    \
         (in, out, count, type, op, comm), NOTE(name, COMM(comm), bytes_of(count, type), NO_PEER))                     \
    FORTRAN(name, lower, (void *in, void *out, int *count_, int *type_, int *op, int *comm_, int *error_),             \
            (in, out, count_, type_, op, comm_, error_), C_COMM C_TYPE C_VALUE(count),                                 \
            NOTE(name, COMM(comm), bytes_of(count, type), NO_PEER))
REDUCES(Allreduce, allreduce)
REDUCES(Reduce_scatter_block, reduce_scatter_block)
REDUCES(Scan, scan)
REDUCES(Exscan, exscan)
WRAP(Reduce_scatter, (const void *in, void *out, const int *counts, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (in, out, counts, type, op, comm), NOTE(Reduce_scatter, COMM(comm), sum_of(counts, comm, type), NO_PEER))
FORTRAN(Reduce_scatter, reduce_scatter, (void *in, void *out, int *counts, int *type_, int *op, int *comm_, int *error_),
        (in, out, counts, type_, op, comm_, error_), C_COMM C_TYPE,
        NOTE(Reduce_scatter, COMM(comm), sum_of(counts, comm, type), NO_PEER))

#define C_BOTH C_COMM MPI_Datatype out_type = real.type_f2c(*out_type_), in_type = real.type_f2c(*in_type_);
#define ROOTED(name, lower, own, own_count, own_type, other_count, other_type)                                         \
    WRAP(name,                                                                                                         \
         (const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,         \
          int root, MPI_Comm comm),                                                                                    \
         (out, out_count, out_type, in, in_count, in_type, root, comm),                                                \
         NOTE(name, COMM(comm), part_of(own, own_count, own_type, other_count, other_type), root))                     \
    FORTRAN(name, lower,                                                                                               \
            (void *out, int *out_count_, int *out_type_, void *in, int *in_count_, int *in_type_, int *root_,          \
             int *comm_, int *error_),                                                                                 \
            (out, out_count_, out_type_, in, in_count_, in_type_, root_, comm_, error_),                               \
            C_BOTH C_VALUE(root) C_VALUE(out_count) C_VALUE(in_count),                                                 \
            NOTE(name, COMM(comm), part_of(own, own_count, own_type, other_count, other_type), root))
ROOTED(Gather, gather, out, out_count, out_type, in_count, in_type)
ROOTED(Scatter, scatter, in, in_count, in_type, out_count, out_type)

WRAP(Gatherv,
     (const void *out, int out_count, MPI_Datatype out_type, void *in, const int *counts, const int *places,
      MPI_Datatype in_type, int root, MPI_Comm comm),
     (out, out_count, out_type, in, counts, places, in_type, root, comm),
     NOTE(Gatherv, COMM(comm), part_of_counts(out, out_count, out_type, counts, in_type, comm), root))
FORTRAN(Gatherv, gatherv,
        (void *out, int *out_count_, int *out_type_, void *in, int *counts, int *places, int *in_type_, int *root_,
         int *comm_, int *error_),
        (out, out_count_, out_type_, in, counts, places, in_type_, root_, comm_, error_),
        C_BOTH C_VALUE(root) C_VALUE(out_count),
        NOTE(Gatherv, COMM(comm), part_of_counts(out, out_count, out_type, counts, in_type, comm), root))
WRAP(Scatterv,
     (const void *out, const int *counts, const int *places, MPI_Datatype out_type, void *in, int in_count,
      MPI_Datatype in_type, int root, MPI_Comm comm),
     (out, counts, places, out_type, in, in_count, in_type, root, comm),
     NOTE(Scatterv, COMM(comm), part_of_counts(in, in_count, in_type, counts, out_type, comm), root))
FORTRAN(Scatterv, scatterv,
        (void *out, int *counts, int *places, int *out_type_, void *in, int *in_count_, int *in_type_, int *root_,
         int *comm_, int *error_),
        (out, counts, places, out_type_, in, in_count_, in_type_, root_, comm_, error_),
        C_BOTH C_VALUE(root) C_VALUE(in_count),
        NOTE(Scatterv, COMM(comm), part_of_counts(in, in_count, in_type, counts, out_type, comm), root))

/* What is received means something in each rank, also in place. */
#define ALL(name, lower)                                                                                               \
    WRAP(name,                                                                                                         \
         (const void *out, int out_count, MPI_Datatype out_type, void *in, int count, MPI_Datatype type,               \
          MPI_Comm comm),                                                                                              \
         (out, out_count, out_type, in, count, type, comm), NOTE(name, COMM(comm), bytes_of(count, type), NO_PEER))    \
    FORTRAN(name, lower,                                                                                               \
            (void *out, int *out_count, int *out_type, void *in, int *count_, int *type_, int *comm_, int *error_),    \
            (out, out_count, out_type, in, count_, type_, comm_, error_), C_COMM C_TYPE C_VALUE(count),                \
            NOTE(name, COMM(comm), bytes_of(count, type), NO_PEER))
ALL(Allgather, allgather)
ALL(Alltoall, alltoall)
WRAP(Allgatherv,
     (const void *out, int out_count, MPI_Datatype out_type, void *in, const int *counts, const int *places,
      MPI_Datatype type, MPI_Comm comm),
     (out, out_count, out_type, in, counts, places, type, comm),
     NOTE(Allgatherv, COMM(comm), sum_of(counts, comm, type), NO_PEER))
FORTRAN(Allgatherv, allgatherv,
        (void *out, int *out_count, int *out_type, void *in, int *counts, int *places, int *type_, int *comm_,
         int *error_),
        (out, out_count, out_type, in, counts, places, type_, comm_, error_), C_COMM C_TYPE,
        NOTE(Allgatherv, COMM(comm), sum_of(counts, comm, type), NO_PEER))
WRAP(Alltoallv,
     (const void *out, const int *out_counts, const int *out_places, MPI_Datatype out_type, void *in, const int *counts,
      const int *places, MPI_Datatype type, MPI_Comm comm),
     (out, out_counts, out_places, out_type, in, counts, places, type, comm),
     NOTE(Alltoallv, COMM(comm), sum_of(counts, comm, type), NO_PEER))
FORTRAN(Alltoallv, alltoallv,
        (void *out, int *out_counts, int *out_places, int *out_type, void *in, int *counts, int *places, int *type_,
         int *comm_, int *error_),
        (out, out_counts, out_places, out_type, in, counts, places, type_, comm_, error_), C_COMM C_TYPE,
        NOTE(Alltoallv, COMM(comm), sum_of(counts, comm, type), NO_PEER))

/* The chooser's. */
static void *(*own_find)(const char *name);

#include "mpi/own.h"
#include "mpi/names.h"
#include "mpi/timed.h"
#include "mpi/lifetime.h"

#endif
