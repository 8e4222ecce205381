/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rest of calls.h: this library's collectives, in place of those of the MPI. What is not theirs is passed on as it came. For
 * a broadcast only the number of bytes decides, since ranks may describe the same bytes by different types; of a reduction the
 * standard wants the same type and operation in all ranks. */
#ifndef MPI_OWN_H
#define MPI_OWN_H

#include "mpi/collectives.h"
#include "mpi/types.h"

struct plain_type {
    MPI_Datatype handle;
    unsigned kinds;
    int size;               /* 0: not asked for yet */
};

struct plain_operation {
    MPI_Op handle;
    unsigned kinds;
};

#define AS_COUNT(name, kinds, symbol, mpich, standard) +1
enum { TYPES = 0 PLAIN_TYPES(AS_COUNT), OPERATIONS_OF_TYPES = 0 PLAIN_OPERATIONS(AS_COUNT) };

static struct {
    any_function *Barrier, *Bcast, *Reduce, *Allreduce;
    any_function *f_barrier, *f_bcast, *f_reduce, *f_allreduce;
    struct plain_type types[TYPES], *last_type;
    struct plain_operation operations[OPERATIONS_OF_TYPES];
    int passed;             /* calls that are passed on now: what another library calls for them is the MPI's */
    MPI_Comm no_comm;
    int key, neighbour;
    const void *fortran_bottom[4];
} own;

#define PASS_ON(call) (own.passed++, call, own.passed--)

static void progress(void)
{
    /* A tag that no message of the neighbour is likely to have: where a message is there, some MPIs go no further. */
    enum { TAG = 32767 };
    int is_there;
    real.iprobe(own.neighbour, TAG, real.world, &is_there, ABI_STATUS_IGNORE);
}

static void give_up(const char *text)
{
    os_print(text);
    real.abort(real.world, 1);
}

static int communicator_freed(MPI_Comm comm, int key, void *kept, void *unused)
{
    (void)key;
    (void)unused;
    collectives_forget(COMM(comm), kept);
    return 0;
}

static int not_copied(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *is_copied)
{
    (void)comm;
    (void)key;
    (void)extra;
    (void)value;
    (void)copy;
    *is_copied = 0;
    return 0;
}

static bool kept(uintptr_t handle, void **value)
{
    int is_there = 0;
    if ((MPI_Comm)handle == own.no_comm || real.comm_get_attr((MPI_Comm)handle, own.key, value, &is_there))
        return false;
    if (!is_there)
        *value = NULL;
    return true;
}

static bool keep(uintptr_t handle, void *value)
{
    return real.comm_set_attr((MPI_Comm)handle, own.key, value) == 0;
}

static bool agree(uintptr_t handle, void *data, size_t bytes)
{
    MPI_Datatype byte = ABI_TYPE(own_find, byte, 0x4c00010d, 0x247);
    return real.bcast(data, (int)bytes, byte, 0, (MPI_Comm)handle) == 0;
}

static int size_of_comm(uintptr_t handle)
{
    int size = 0, is_inter = 0;
    if (real.comm_test_inter((MPI_Comm)handle, &is_inter) || is_inter || real.comm_size((MPI_Comm)handle, &size))
        return 0;
    return size;
}

/* Without new memory, unlike describe(): a communicator is set up in some microseconds. */
static bool members(uintptr_t handle, int size, int *ranks)
{
    static int numbers[RANKS];
    MPI_Group group, all;
    if (size > RANKS || real.comm_group((MPI_Comm)handle, &group))
        return false;
    for (int i = numbers[size - 1] ? size : 0; i < size; i++)
        numbers[i] = i;
    bool is_known = real.comm_group(real.world, &all) == 0;
    if (is_known) {
        is_known = real.group_translate_ranks(group, size, numbers, all, ranks) == 0;
        real.group_free(&all);
    }
    real.group_free(&group);
    return is_known;
}

static int rank_of_comm(uintptr_t handle)
{
    return rank_in((MPI_Comm)handle);
}

/* The type if it is a plain one, else NULL. */
static struct plain_type *plain_type(MPI_Datatype type)
{
    if (__builtin_expect(own.last_type->handle == type, true))
        return own.last_type;
    for (int i = 0; i < TYPES; i++)
        if (own.types[i].handle == type) {
            if (own.types[i].size == 0 && real.type_size(type, &own.types[i].size))
                return NULL;
            return own.last_type = &own.types[i];
        }
    return NULL;
}

static const struct plain_operation *plain_operation(MPI_Op op)
{
    for (int i = 0; i < OPERATIONS_OF_TYPES; i++)
        if (own.operations[i].handle == op)
            return &own.operations[i];
    return NULL;
}

static bool barrier(MPI_Comm comm)
{
    struct team *team = collectives_team(COMM(comm), SERVED_Barrier, 0);
    if (team)
        team_barrier(team);
    return team;
}

/* What is packed has the bytes of the type, without a header: MPIs write one for other machines only. */
static bool broadcast_packed(struct team *team, void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                             size_t bytes)
{
    unsigned char packed[2 * LARGEST];
    int at = 0;
    if (team->rank == root && real.pack(buffer, count, type, packed, sizeof packed, &at, comm))
        return false;
    team_broadcast(team, packed, bytes, root);
    at = 0;
    return team->rank == root || real.unpack(packed, (int)bytes, &at, buffer, count, type, comm) == 0;
}

/* What is wrong with the arguments the MPI says. */
static bool broadcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    if (count <= 0 || type == real.no_type)
        return false;
    const struct plain_type *plain = plain_type(type);
    int size = plain ? plain->size : 0;
    if (!plain && real.type_size(type, &size))
        return false;
    uint64_t bytes = (uint64_t)count * (uint64_t)size;
    if (bytes == 0 || bytes > LARGEST || (plain && !buffer))
        return false;
    struct team *team = collectives_team(COMM(comm), SERVED_Bcast, bytes);
    if (!team || root < 0 || root >= team->size)
        return false;
    if (!plain)
        return broadcast_packed(team, buffer, count, type, root, comm, bytes);
    team_broadcast(team, buffer, bytes, root);
    return true;
}

static void combine(const void *in, void *inout, const struct reduction *reduction)
{
    real.reduce_local(in, inout, reduction->count, (MPI_Datatype)reduction->type, (MPI_Op)reduction->operation);
}

/* The bytes of a reduction that may be this library's, else 0. */
static size_t reduced_bytes(int count, MPI_Datatype type, MPI_Op op)
{
    if (count <= 0 || count > LARGEST)
        return 0;
    const struct plain_type *plain = plain_type(type);
    const struct plain_operation *operation = plain_operation(op);
    if (!plain || !operation || !(plain->kinds & operation->kinds))
        return 0;
    size_t bytes = (size_t)count * (size_t)plain->size;
    return bytes <= LARGEST ? bytes : 0;
}

static bool allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    size_t bytes = reduced_bytes(count, type, op);
    if (bytes == 0 || !in || !out || in == out)
        return false;
    struct team *team = collectives_team(COMM(comm), SERVED_Allreduce, bytes);
    if (!team)
        return false;
    struct reduction reduction = {combine, count, (uintptr_t)type, (uintptr_t)op};
    team_reduce(team, is_in_place(in) ? out : in, out, bytes, &reduction, ALL_RANKS);
    return true;
}

static bool reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    size_t bytes = reduced_bytes(count, type, op);
    if (bytes == 0 || !in)
        return false;
    struct team *team = collectives_team(COMM(comm), SERVED_Reduce, bytes);
    if (!team || root < 0 || root >= team->size)
        return false;
    if (team->rank == root && (!out || in == out))
        return false;
    struct reduction reduction = {combine, count, (uintptr_t)type, (uintptr_t)op};
    team_reduce(team, team->rank == root && is_in_place(in) ? out : in, out, bytes, &reduction, root);
    return true;
}

static int own_Barrier(MPI_Comm comm)
{
    int result = 0;
    if (!barrier(comm))
        PASS_ON(result = ((__typeof__(&own_Barrier))own.Barrier)(comm));
    return result;
}

static int own_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int result = 0;
    if (!broadcast(buffer, count, type, root, comm))
        PASS_ON(result = ((__typeof__(&own_Bcast))own.Bcast)(buffer, count, type, root, comm));
    return result;
}

static int own_Reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    int result = 0;
    if (!reduce(in, out, count, type, op, root, comm))
        PASS_ON(result = ((__typeof__(&own_Reduce))own.Reduce)(in, out, count, type, op, root, comm));
    return result;
}

static int own_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int result = 0;
    if (!allreduce(in, out, count, type, op, comm))
        PASS_ON(result = ((__typeof__(&own_Allreduce))own.Allreduce)(in, out, count, type, op, comm));
    return result;
}

static void succeed(int *error)
{
    if (error)
        *error = 0;
}

/* MPI_BOTTOM is a variable in Fortran. */
static void *from_fortran(void *buffer)
{
    for (size_t i = 0; i < sizeof own.fortran_bottom / sizeof *own.fortran_bottom; i++)
        if (buffer && buffer == own.fortran_bottom[i])
            return NULL;
    return buffer;
}

static void own_f_barrier(int *comm, int *error)
{
    if (barrier(real.comm_f2c(*comm)))
        succeed(error);
    else
        PASS_ON(((__typeof__(&own_f_barrier))own.f_barrier)(comm, error));
}

static void own_f_bcast(void *buffer, int *count, int *type, int *root, int *comm, int *error)
{
    if (broadcast(from_fortran(buffer), *count, real.type_f2c(*type), *root, real.comm_f2c(*comm)))
        succeed(error);
    else
        PASS_ON(((__typeof__(&own_f_bcast))own.f_bcast)(buffer, count, type, root, comm, error));
}

static void own_f_reduce(void *in, void *out, int *count, int *type, int *op, int *root, int *comm, int *error)
{
    if (reduce(from_fortran(in), from_fortran(out), *count, real.type_f2c(*type), real.op_f2c(*op), *root,
               real.comm_f2c(*comm)))
        succeed(error);
    else
        PASS_ON(((__typeof__(&own_f_reduce))own.f_reduce)(in, out, count, type, op, root, comm, error));
}

static void own_f_allreduce(void *in, void *out, int *count, int *type, int *op, int *comm, int *error)
{
    if (allreduce(from_fortran(in), from_fortran(out), *count, real.type_f2c(*type), real.op_f2c(*op),
                  real.comm_f2c(*comm)))
        succeed(error);
    else
        PASS_ON(((__typeof__(&own_f_allreduce))own.f_allreduce)(in, out, count, type, op, comm, error));
}

#define AS_PLAIN_TYPE(name, kinds, symbol, mpich, standard) {ABI_TYPE(own_find, symbol, mpich, standard), kinds, 0},
#define AS_PLAIN_OPERATION(name, kinds, symbol, mpich, standard)                                                       \
    {ABI_OPERATION(own_find, symbol, mpich, standard), kinds},

static bool can_serve(void)
{
    static const char *const BOTTOM[] = {"mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__",
                                         "MPI_FORTRAN_BOTTOM"};
    const struct plain_type types[] = {PLAIN_TYPES(AS_PLAIN_TYPE)};
    const struct plain_operation operations[] = {PLAIN_OPERATIONS(AS_PLAIN_OPERATION)};
    int size = size_of_comm(COMM(real.world));
    memcpy(own.types, types, sizeof types);
    memcpy(own.operations, operations, sizeof operations);
    own.last_type = own.types;
    own.no_comm = ABI_COMM_NULL(own_find);
    own.neighbour = size > 1 ? (rank_in(real.world) + 1) % size : 0;
    for (size_t i = 0; ABI_FORTRAN_IS_SEPARATE && i < sizeof BOTTOM / sizeof *BOTTOM; i++)
        own.fortran_bottom[i] = own_find(BOTTOM[i]);
    team_calls = (struct team_calls){progress, give_up};
    return real.iprobe && real.abort && real.comm_get_attr && real.comm_set_attr && real.comm_create_keyval && real.bcast &&
           real.barrier && real.reduce && real.allreduce && real.pack && real.unpack && real.reduce_local && (!ABI_FORTRAN_IS_SEPARATE || real.op_f2c) && own.types[0].handle &&
           real.type_size(own.types[0].handle, &own.types[0].size) == 0 &&
           real.comm_create_keyval(not_copied, communicator_freed, &own.key, NULL) == 0;
}

#define TAKE_OVER(name)                                                                                                \
    own.name = real.name;                                                                                              \
    if (own.name)                                                                                                      \
        real.name = (any_function *)own_##name;

static void serve(void)
{
    TAKE_OVER(Barrier)
    TAKE_OVER(Bcast)
    TAKE_OVER(Reduce)
    TAKE_OVER(Allreduce)
    TAKE_OVER(f_barrier)
    TAKE_OVER(f_bcast)
    TAKE_OVER(f_reduce)
    TAKE_OVER(f_allreduce)
}

#endif
