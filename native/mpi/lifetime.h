/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rest of calls.h: the functions that begin and end MPI and its communicators, what is asked of an MPI, and the table. */
#ifndef MPI_LIFETIME_H
#define MPI_LIFETIME_H

static void has_begun(void)
{
    tally_begin(&ABI_TABLE);
    collectives_begin(&ABI_TABLE);
}

static int Init(int *count, char ***words)
{
    collectives_come(&ABI_TABLE);
    int result = ((int (*)(int *, char ***))real.Init)(count, words);
    if (result == 0)
        has_begun();
    return result;
}

static int Init_thread(int *count, char ***words, int required, int *provided)
{
    collectives_come(&ABI_TABLE);
    int result = ((int (*)(int *, char ***, int, int *))real.Init_thread)(count, words, required, provided);
    if (result == 0)
        has_begun();
    return result;
}

static int Finalize(void)
{
    tally_end();
    collectives_end();
    int result = ((int (*)(void))real.Finalize)();
    tally_judge_rest();
    return result;
}

static void finish(void)
{
    Finalize();
}

static int Comm_free(MPI_Comm *comm)
{
    uintptr_t handle = comm ? (uintptr_t)*comm : NO_COMMUNICATOR;
    int result = ((int (*)(MPI_Comm *))real.Comm_free)(comm);
    if (result == 0)
        tally_forget(handle);
    return result;
}

static int Comm_disconnect(MPI_Comm *comm)
{
    uintptr_t handle = comm ? (uintptr_t)*comm : NO_COMMUNICATOR;
    int result = ((int (*)(MPI_Comm *))real.Comm_disconnect)(comm);
    if (result == 0)
        tally_forget(handle);
    return result;
}

static __attribute__((unused)) void f_init(int *error)
{
    collectives_come(&ABI_TABLE);
    ((void (*)(int *))real.f_init)(error);
    if (!error || *error == 0)
        has_begun();
}

static __attribute__((unused)) void f_init_thread(int *required, int *provided, int *error)
{
    collectives_come(&ABI_TABLE);
    ((void (*)(int *, int *, int *))real.f_init_thread)(required, provided, error);
    if (!error || *error == 0)
        has_begun();
}

static __attribute__((unused)) void f_finalize(int *error)
{
    tally_end();
    collectives_end();
    ((void (*)(int *))real.f_finalize)(error);
    tally_judge_rest();
}

static __attribute__((unused)) void f_comm_free(int *comm, int *error)
{
    uintptr_t handle = (uintptr_t)real.comm_f2c(*comm);
    ((void (*)(int *, int *))real.f_comm_free)(comm, error);
    if (!error || *error == 0)
        tally_forget(handle);
}

static __attribute__((unused)) void f_comm_disconnect(int *comm, int *error)
{
    uintptr_t handle = (uintptr_t)real.comm_f2c(*comm);
    ((void (*)(int *, int *))real.f_comm_disconnect)(comm, error);
    if (!error || *error == 0)
        tally_forget(handle);
}

#define FIND(name, lower, count) real.name = (any_function *)find("MPI_" #name);
#define FIND_FORTRAN(name, lower, count) real.f_##lower = (any_function *)find("mpi_" #lower "_");
#define FIND_LARGE(name, lower, count)                                                                                 \
    large.name##_c = (any_function *)find("MPI_" #name "_c");                                                          \
    large.p_##name##_c = (any_function *)find("PMPI_" #name "_c");
#define FIND_OWN(field, name) real.field = (__typeof__(real.field))find("PMPI_" name);

static void begin(void *(*find)(const char *name))
{
    static const char *const IN_PLACE[] = {"mpi_fortran_in_place_", "mpi_fortran_in_place", "mpi_fortran_in_place__",
                                           "MPI_FORTRAN_IN_PLACE"};
    FUNCTIONS(FIND)
    LARGE_NAMES(FIND_LARGE)
    FIND_OWN(type_size, "Type_size")
    FIND_OWN(comm_rank, "Comm_rank")
    FIND_OWN(comm_size, "Comm_size")
    FIND_OWN(comm_test_inter, "Comm_test_inter")
    FIND_OWN(comm_group, "Comm_group")
    FIND_OWN(comm_remote_group, "Comm_remote_group")
    FIND_OWN(comm_get_name, "Comm_get_name")
    FIND_OWN(group_size, "Group_size")
    FIND_OWN(group_translate_ranks, "Group_translate_ranks")
    FIND_OWN(group_free, "Group_free")
    FIND_OWN(get_library_version, "Get_library_version")
    FIND_OWN(query_thread, "Query_thread")
    FIND_OWN(iprobe, "Iprobe")
    FIND_OWN(abort, "Abort")
    FIND_OWN(comm_get_attr, "Comm_get_attr")
    FIND_OWN(comm_set_attr, "Comm_set_attr")
    FIND_OWN(comm_create_keyval, "Comm_create_keyval")
    FIND_OWN(bcast, "Bcast")
    FIND_OWN(barrier, "Barrier")
    FIND_OWN(reduce, "Reduce")
    FIND_OWN(allreduce, "Allreduce")
    FIND_OWN(pack, "Pack")
    FIND_OWN(unpack, "Unpack")
    FIND_OWN(reduce_local, "Reduce_local")
    own_find = find;
    real.world = ABI_COMM_WORLD(find);
    real.no_type = ABI_DATATYPE_NULL(find);
    if (!ABI_FORTRAN_IS_SEPARATE)
        return;
    FUNCTIONS(FIND_FORTRAN)
    FIND_OWN(comm_f2c, "Comm_f2c")
    FIND_OWN(type_f2c, "Type_f2c")
    FIND_OWN(op_f2c, "Op_f2c")
    for (size_t i = 0; i < sizeof IN_PLACE / sizeof *IN_PLACE; i++)
        real.fortran_in_place[i] = find(IN_PLACE[i]);
}

/* The ranks in MPI_COMM_WORLD of a group; NULL without memory, or if the MPI refuses. */
static int *world_ranks(MPI_Group group, int size)
{
    MPI_Group all;
    size_t bytes = sizeof(int) * (size_t)(size > 0 ? size : 1);
    int *own = os_allocate(bytes, 0), *world = os_allocate(bytes, 0);
    bool is_known = own && world && real.comm_group(real.world, &all) == 0;
    for (int i = 0; own && i < size; i++)
        own[i] = i;
    if (is_known) {
        is_known = real.group_translate_ranks(group, size, own, all, world) == 0;
        real.group_free(&all);
    }
    if (own)
        os_unmap(own, bytes);
    if (world && !is_known)
        os_unmap(world, bytes);
    for (int i = 0; is_known && i < size; i++)
        world[i] = world[i] < 0 ? -1 : world[i];
    return is_known ? world : NULL;
}

static bool describe(uintptr_t handle, struct described *described)
{
    /* Longer than any MPI's MPI_MAX_OBJECT_NAME. */
    char name[256] = "";
    int is_inter = 0, length = 0;
    MPI_Comm comm = (MPI_Comm)handle;
    MPI_Group group;
    if (real.comm_test_inter(comm, &is_inter) || real.comm_rank(comm, &described->rank) ||
        real.comm_size(comm, &described->size) || (is_inter ? real.comm_remote_group : real.comm_group)(comm, &group))
        return false;
    described->is_inter = is_inter;
    if (real.group_size(group, &described->others) == 0)
        described->world = world_ranks(group, described->others);
    real.group_free(&group);
    if (real.comm_get_name(comm, name, &length) == 0)
        memcpy(described->name, name, sizeof described->name - 1);
    return described->world;
}

static void version(char *text, int bytes)
{
    /* MPI_MAX_LIBRARY_VERSION_STRING of MPICH. */
    static char all[8192 + 1];
    int length = 0;
    if (real.get_library_version && real.get_library_version(all, &length) == 0)
        memcpy(text, all, (size_t)bytes - 1);
}

static int thread_level(void)
{
    static const int LEVELS[] = ABI_THREAD_LEVELS;
    int level = 0, at = 0;
    if (real.query_thread(&level))
        return 3;
    while (at < 3 && LEVELS[at] != level)
        at++;
    return at;
}

static uintptr_t world(void)
{
    return (uintptr_t)real.world;
}

#define ENTRY(name, lower, count) .name = (any_function *)name,
#define OWN_ENTRY(name, lower, count) .p_##name = (any_function *)p_##name,
#define LARGE_ENTRY(name, lower, count) .name##_c = (any_function *)name##_c, .p_##name##_c = (any_function *)p_##name##_c,
#define FORTRAN_ENTRY(name, lower, count) .f_##lower = ABI_FORTRAN_IS_SEPARATE ? (any_function *)f_##lower : NULL,

const struct mpi_table ABI_TABLE = {FUNCTIONS(ENTRY) FUNCTIONS(FORTRAN_ENTRY) OWN_NAMES(OWN_ENTRY)
                                    LARGE_NAMES(LARGE_ENTRY).number = ABI_NUMBER,
                                    .begin = begin,
                                    .describe = describe,
                                    .version = version,
                                    .thread_level = thread_level,
                                    .world = world,
                                    .size = size_of_comm,
                                    .rank = rank_of_comm,
                                    .members = members,
                                    .can_serve = can_serve,
                                    .serve = serve,
                                    .agree = agree,
                                    .kept = kept,
                                    .keep = keep,
                                    .call = call_timed,
                                    .largest = largest,
                                    .finish = finish,
                                    .abort = give_up};

#endif
