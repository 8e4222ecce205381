/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* collectives CASE|all [SEED]: collectives of a communicator, MPI_*, against those of the MPI itself. All
 * ranks draw the same random numbers. */
#include "check_mpi.h"
#include <stdint.h>
#include <unistd.h>

enum { MOST = 8192 };
static _Alignas(64) unsigned char given[MOST], mine[MOST], theirs[MOST];
static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % below;
}

/* Other bytes in each rank and call. */
static void fill(int rank)
{
    static uint64_t calls;
    uint64_t state = ++calls * 977 + (uint64_t)rank * 31337;
    for (size_t i = 0; i < sizeof given; i++) {
        state = state * UINT64_C(6364136223846793005) + 1;
        given[i] = (unsigned char)(state >> 56);
    }
}

struct reduction {
    MPI_Datatype type;
    MPI_Op op;
    size_t size;
};
static struct reduction reductions[32];
static int reduction_count;

static void declare(void)
{
    const struct reduction all[] = {
        {MPI_INT, MPI_SUM, sizeof(int)},
        {MPI_INT, MPI_MAX, sizeof(int)},
        {MPI_LONG, MPI_MIN, sizeof(long)},
        {MPI_UNSIGNED_CHAR, MPI_PROD, sizeof(char)},
        {MPI_SHORT, MPI_BXOR, sizeof(short)},
        {MPI_UNSIGNED_LONG_LONG, MPI_BAND, sizeof(long long)},
        {MPI_INT64_T, MPI_BOR, sizeof(int64_t)},
        {MPI_UINT16_T, MPI_LAND, sizeof(uint16_t)},
        {MPI_INT, MPI_LOR, sizeof(int)},
        {MPI_INT, MPI_LXOR, sizeof(int)},
        {MPI_BYTE, MPI_BXOR, sizeof(char)},
        {MPI_2INT, MPI_MAXLOC, sizeof(int[2])},
        {MPI_2INT, MPI_MINLOC, sizeof(int[2])},
        {MPI_DOUBLE, MPI_SUM, sizeof(double)},
        {MPI_FLOAT, MPI_SUM, sizeof(float)},
        {MPI_LONG_DOUBLE, MPI_MAX, sizeof(long double)},
        {MPI_C_DOUBLE_COMPLEX, MPI_SUM, sizeof(double[2])},
    };
    reduction_count = sizeof all / sizeof *all;
    memcpy(reductions, all, sizeof all);
}

/* Floating numbers are small whole ones, so that no order of their sum differs. */
static void fill_for(MPI_Datatype type, int rank)
{
    static unsigned char noise[MOST];
    fill(rank);
    memcpy(noise, given, sizeof noise);
    if (type == MPI_DOUBLE || type == MPI_C_DOUBLE_COMPLEX)
        for (size_t i = 0; i < MOST / sizeof(double); i++)
            ((double *)given)[i] = noise[i] % 100;
    else if (type == MPI_FLOAT)
        for (size_t i = 0; i < MOST / sizeof(float); i++)
            ((float *)given)[i] = noise[i] % 100;
    else if (type == MPI_LONG_DOUBLE) {
        /* It has bytes that mean nothing. */
        memset(given, 0, sizeof given);
        for (size_t i = 0; i < MOST / sizeof(long double); i++)
            ((long double *)given)[i] = noise[i] % 100;
    }
}

static void same(const char *what, size_t bytes)
{
    expect(what, memcmp(mine, theirs, bytes) == 0);
}

static void one_broadcast(MPI_Comm comm, size_t bytes, int root)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    fill(rank);
    memcpy(mine, given, sizeof mine);
    memcpy(theirs, given, sizeof theirs);
    MPI_Bcast(mine, (int)bytes, MPI_BYTE, root, comm);
    OF_THE_MPI(MPI_Bcast)(theirs, (int)bytes, MPI_BYTE, root, comm);
    same("a broadcast", MOST);
}

/* Ranks describe the same bytes by other types. */
static void broadcast_of_types(MPI_Comm comm, int count, int root)
{
    int rank;
    MPI_Datatype strided, same_bytes;
    MPI_Comm_rank(comm, &rank);
    MPI_Type_vector(count, 1, 2, MPI_INT, &strided);
    MPI_Type_contiguous(2, MPI_INT, &same_bytes);
    MPI_Type_commit(&strided);
    MPI_Type_commit(&same_bytes);
    fill(rank);
    memcpy(mine, given, sizeof mine);
    if (rank % 3 == 0)
        MPI_Bcast(mine, 2, strided, root, comm);
    else if (rank % 3 == 1)
        MPI_Bcast(mine, count, same_bytes, root, comm);
    else
        MPI_Bcast(mine, 2 * count, MPI_INT, root, comm);
    /* As one rank sees them: packed, by the MPI's own broadcast of bytes. */
    memcpy(theirs, given, sizeof theirs);
    unsigned char packed[MOST];
    int at = 0, bytes = count * 8;
    if (rank % 3 == 0)
        MPI_Pack(theirs, 2, strided, packed, MOST, &at, comm);
    else
        memcpy(packed, theirs, (size_t)bytes);
    OF_THE_MPI(MPI_Bcast)(packed, bytes, MPI_BYTE, root, comm);
    at = 0;
    if (rank == root)
        ;
    else if (rank % 3 == 0)
        MPI_Unpack(packed, bytes, &at, theirs, 2, strided, comm);
    else
        memcpy(theirs, packed, (size_t)bytes);
    same("a broadcast of different types", MOST);
    MPI_Type_free(&strided);
    MPI_Type_free(&same_bytes);
}

static void one_reduce(MPI_Comm comm, int which, int count, int root, int in_place)
{
    int rank;
    MPI_Datatype type = reductions[which].type;
    MPI_Op op = reductions[which].op;
    /* The MPI's own ones. */
    in_place &= op != MPI_MAXLOC && op != MPI_MINLOC && (size_t)count * reductions[which].size <= 4096;
    MPI_Comm_rank(comm, &rank);
    fill_for(type, rank);
    memcpy(mine, given, sizeof mine);
    memcpy(theirs, given, sizeof theirs);
    if (in_place && rank == root)
        MPI_Reduce(MPI_IN_PLACE, mine, count, type, op, root, comm);
    else
        MPI_Reduce(given, rank == root ? mine : NULL, count, type, op, root, comm);
    /* Not in place: MPICH 4.0.2 ends there by a signal (issue 6540). */
    OF_THE_MPI(MPI_Reduce)(given, rank == root ? theirs : NULL, count, type, op, root, comm);
    same("a reduce", MOST);
}

static void one_allreduce(MPI_Comm comm, int which, int count, int in_place)
{
    int rank;
    MPI_Datatype type = reductions[which].type;
    MPI_Op op = reductions[which].op;
    MPI_Comm_rank(comm, &rank);
    fill_for(type, rank);
    memcpy(mine, given, sizeof mine);
    memcpy(theirs, given, sizeof theirs);
    MPI_Allreduce(in_place ? MPI_IN_PLACE : given, mine, count, type, op, comm);
    OF_THE_MPI(MPI_Allreduce)(in_place ? MPI_IN_PLACE : given, theirs, count, type, op, comm);
    same("an allreduce", MOST);
}

/* All forms of all operations, around each limit of sizes. */
static void forms(void)
{
    static const size_t SIZES[] = {0, 1, 8, 47, 48, 49, 64, 1000, 4095, 4096, 4097, 8000};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        for (int root = 0; root < size; root++) {
            one_broadcast(MPI_COMM_WORLD, SIZES[i], root);
            for (int which = 0; which < reduction_count; which++) {
                int count = (int)(SIZES[i] / reductions[which].size);
                one_reduce(MPI_COMM_WORLD, which, count, root, (which + root) % 2);
                one_allreduce(MPI_COMM_WORLD, which, count, (which + root) % 2);
            }
        }
    for (int root = 0; root < size; root++)
        for (int count = 1; count < 700; count += 37)
            broadcast_of_types(MPI_COMM_WORLD, count, root);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Calls that wait for nobody, many in a row: ranks are far ahead of others. */
static void ahead(MPI_Comm comm, int calls)
{
    int rank, ranks, root = 0;
    long value, sum, bytes[512];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < calls; i++) {
        int kind = (int)draw(3), count = draw(2) ? 1 : 1 + (int)draw(512), late = (int)draw((unsigned)ranks);
        root = draw(4) ? root : (int)draw((unsigned)ranks);
        if (draw(8) == 0 && rank == late)
            usleep(200);
        for (int at = 0; at < count; at++)
            bytes[at] = rank == root || kind ? i * 7 + at + (kind ? rank : 0) : -1;
        if (kind == 0) {
            MPI_Bcast(bytes, count, MPI_LONG, root, comm);
            for (int at = 0; at < count; at++)
                expect("a broadcast in a row", bytes[at] == i * 7 + at);
            continue;
        }
        long out[512];
        MPI_Reduce(bytes, out, count, MPI_LONG, MPI_SUM, root, comm);
        for (int at = 0; rank == root && at < count; at++)
            expect("a reduce in a row", out[at] == (long)ranks * (i * 7 + at) + (long)ranks * (ranks - 1) / 2);
    }
    value = rank;
    MPI_Allreduce(&value, &sum, 1, MPI_LONG, MPI_SUM, comm);
    expect("the sum behind them", sum == (long)ranks * (ranks - 1) / 2);
}

static void one_call(MPI_Comm comm)
{
    int ranks, which = (int)draw((unsigned)reduction_count), kind = (int)draw(6), in_place = (int)draw(2);
    int count = (int)((draw(3) ? draw(64) : draw(4500)) / reductions[which].size);
    MPI_Comm_size(comm, &ranks);
    int root = (int)draw((unsigned)ranks);
    if (kind == 0)
        MPI_Barrier(comm);
    else if (kind == 1)
        one_broadcast(comm, draw(4500), root);
    else if (kind == 2)
        broadcast_of_types(comm, 1 + (int)draw(600), root);
    else if (kind == 3)
        one_reduce(comm, which, count, root, in_place);
    else
        one_allreduce(comm, which, count, in_place);
}

/* Communicators come and go; some ranks free one while others still read there. */
static void random_communicators(void)
{
    enum { KEPT = 6 };
    MPI_Comm comms[KEPT];
    for (int i = 0; i < KEPT; i++)
        comms[i] = MPI_COMM_NULL;
    for (int round = 0; round < 60; round++) {
        MPI_Comm *comm = &comms[draw(KEPT)];
        uint64_t common = seed;
        if (*comm != MPI_COMM_NULL)
            MPI_Comm_free(comm);
        int colours = 1 + (int)draw(3), turn = (int)draw(2), colour = 0;
        for (int other = 0; other <= rank; other++)
            colour = (int)draw((unsigned)colours);
        seed = common + 12345;
        if (draw(4) == 0)
            MPI_Comm_dup(MPI_COMM_WORLD, comm);
        else
            MPI_Comm_split(MPI_COMM_WORLD, colour, turn ? -rank : rank, comm);
        for (int call = 0; call < 40; call++) {
            common = seed;
            one_call(draw(3) ? *comm : MPI_COMM_WORLD);
            /* Ranks of communicators of other sizes drew other numbers. */
            seed = common + 777;
        }
        if (draw(3) == 0)
            ahead(*comm, 30), seed = common + 999;
    }
    for (int i = 0; i < KEPT; i++)
        if (comms[i] != MPI_COMM_NULL)
            MPI_Comm_free(&comms[i]);
}

/* Sums of doubles have the same bits in all ranks and repetitions, and on a copy of the communicator. */
static void bits(void)
{
    enum { COUNT = 100 };
    double in[COUNT], first[COUNT], out[COUNT];
    MPI_Comm copy;
    for (int i = 0; i < COUNT; i++)
        in[i] = (double)(draw(1000000) + 1) * (rank * 1.37 + 0.1) / (1 + draw(97));
    MPI_Allreduce(in, first, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    memcpy(out, first, sizeof out);
    OF_THE_MPI(MPI_Bcast)(out, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    expect("the bits in all ranks", memcmp(first, out, sizeof out) == 0);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int i = 0; i < 10; i++) {
        if (draw((unsigned)size) == (unsigned)rank)
            usleep(50);
        MPI_Comm comm = i % 2 ? copy : MPI_COMM_WORLD;
        memset(out, 0, sizeof out);
        MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm);
        expect("the bits of a repetition", memcmp(first, out, sizeof out) == 0);
        MPI_Reduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, i % size, comm);
        expect("the bits of a reduce", rank != i % size || memcmp(first, out, sizeof out) == 0);
        for (int at = 0; at < COUNT; at++) {
            MPI_Allreduce(&in[at], &out[at], 1, MPI_DOUBLE, MPI_SUM, comm);
            expect("the bits of a single one", memcmp(&first[at], &out[at], sizeof *out) == 0);
        }
    }
    MPI_Comm_free(&copy);
}

/* Large messages are under way while ranks wait in a collective: they need those ranks. */
static void pending(void)
{
    enum { LARGE = 1 << 20 };
    static char out[LARGE], in[LARGE], more[64];
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request requests[2];
    for (int round = 0; round < 30; round++) {
        memset(out, rank + round, LARGE);
        MPI_Isend(out, LARGE, MPI_CHAR, next, 5, MPI_COMM_WORLD, &requests[0]);
        /* A message that nobody expects yet. */
        MPI_Isend(more, 64, MPI_CHAR, next, 6, MPI_COMM_WORLD, &requests[1]);
        if (rank % 2 == 0)
            MPI_Barrier(MPI_COMM_WORLD);
        MPI_Recv(in, LARGE, MPI_CHAR, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank % 2 == 1)
            MPI_Barrier(MPI_COMM_WORLD);
        expect("a large message", in[0] == (char)(before + round) && in[LARGE - 1] == in[0]);
        MPI_Recv(more, 64, MPI_CHAR, before, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

static void first_of(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    memcpy(inout, in, (size_t)*count * sizeof(int));
}

/* What is the MPI's, and arguments that are wrong. */
static void others(void)
{
    MPI_Op op;
    MPI_Comm inter, half;
    int one = rank, result = -1, mine_error, their_error;
    MPI_Op_create(first_of, 0, &op);
    for (int i = 0; i < 10; i++) {
        MPI_Allreduce(&one, &result, 1, MPI_INT, op, MPI_COMM_WORLD);
        expect("an operation of the program", result == 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Op_free(&op);
    if (size > 1) {
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 9, &inter);
        for (int i = 0; i < 5; i++)
            MPI_Barrier(inter);
        MPI_Allreduce(&one, &result, 1, MPI_INT, MPI_MAX, inter);
        OF_THE_MPI(MPI_Allreduce)(&one, &mine_error, 1, MPI_INT, MPI_MAX, inter);
        expect("two groups", result == mine_error);
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
#ifdef OPEN_MPI
    /* MPICH as Debian and PyPI build it looks at no arguments. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    mine_error = MPI_Bcast(&one, 1, MPI_INT, size + 3, MPI_COMM_WORLD);
    their_error = OF_THE_MPI(MPI_Bcast)(&one, 1, MPI_INT, size + 3, MPI_COMM_WORLD);
    MPI_Error_class(mine_error, &mine_error);
    MPI_Error_class(their_error, &their_error);
    expect("the error of a wrong root", mine_error == their_error && mine_error != MPI_SUCCESS);
    mine_error = MPI_Barrier(MPI_COMM_NULL);
    MPI_Error_class(mine_error, &mine_error);
    expect("the error of no communicator", mine_error == MPI_ERR_COMM);
    mine_error = MPI_Allreduce(&one, &result, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Error_class(mine_error, &mine_error);
    expect("the error of a negative count", mine_error == MPI_ERR_COUNT);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
#endif
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The ranks of a call know it by different names. */
static void names(void)
{
#if MPI_VERSION >= 4
    enum { NAMES = 4 };
#else
    enum { NAMES = 2 };
#endif
    for (int round = 0; round < 200; round++) {
        int way = (rank + round) % NAMES, root = round % size;
        long own[5] = {rank, round, 1}, sums[5] = {0}, parts[5] = {0}, sent[5] = {rank == root ? round : -1};
        (way % 2 ? PMPI_Barrier : MPI_Barrier)(MPI_COMM_WORLD);
        if (way < 2) {
            (way % 2 ? PMPI_Bcast : MPI_Bcast)(sent, 5, MPI_LONG, root, MPI_COMM_WORLD);
            (way % 2 ? PMPI_Reduce : MPI_Reduce)(own, parts, 5, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
            (way % 2 ? PMPI_Allreduce : MPI_Allreduce)(own, sums, 5, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        }
#if MPI_VERSION >= 4
        else {
            (way % 2 ? PMPI_Bcast_c : MPI_Bcast_c)(sent, 5, MPI_LONG, root, MPI_COMM_WORLD);
            (way % 2 ? PMPI_Reduce_c : MPI_Reduce_c)(own, parts, 5, MPI_LONG, MPI_SUM, root, MPI_COMM_WORLD);
            (way % 2 ? PMPI_Allreduce_c : MPI_Allreduce_c)(own, sums, 5, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        }
#endif
        expect("a broadcast by several names", sent[0] == round);
        expect("an allreduce by several names", sums[0] == size * (size - 1) / 2 && sums[1] == round * size && sums[2] == size);
        expect("a reduce by several names", rank != root || memcmp(parts, sums, sizeof parts) == 0);
    }
}

/* Very many communicators: their memory is used again, and when there is none the MPI does it. */
static void many(void)
{
    enum { KEPT = 200 };
    static MPI_Comm kept[KEPT];
    long one = 1, sum;
    for (int i = 0; i < 400; i++) {
        MPI_Comm copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, copy);
        expect("a sum", sum == size);
        MPI_Comm_free(&copy);
    }
    for (int i = 0; i < KEPT; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &kept[i]);
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, kept[i]);
        expect("a sum of many", sum == size);
    }
    for (int i = 0; i < KEPT; i++)
        MPI_Comm_free(&kept[i]);
}

/* The last rank ends in the middle: without a word, by a signal, or by a call that disagrees. */
static void ends(const char *how)
{
    long one = 1, sum, ones[2] = {1, 1}, sums[2];
    for (int i = 0;; i++) {
        if (i == 100 && rank == size - 1) {
            if (strcmp(how, "exits") == 0)
                _exit(3);
            if (strcmp(how, "killed") == 0)
                kill(getpid(), SIGKILL);
            MPI_Allreduce(ones, sums, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        }
        MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void threads(void)
{
    one_allreduce(MPI_COMM_WORLD, 0, 10, 0);
}

static void rows(void)
{
    for (int i = 0; i < 20; i++)
        ahead(MPI_COMM_WORLD, 100);
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } CASES[] = {{"bits", bits}, {"rows", rows}, {"pending", pending}, {"others", others}, {"many", many},
                 {"names", names}, {"forms", forms}, {"random", random_communicators}, {"threads", threads}};
    enum { OF_ALL = 8 };
    const char *name = count > 1 ? words[1] : "forms";
    seed = count > 2 ? strtoull(words[2], NULL, 10) : 1;
    begin_mpi(strcmp(name, "threads") == 0);
    declare();
    if (strcmp(name, "exits") == 0 || strcmp(name, "killed") == 0 || strcmp(name, "disagrees") == 0)
        ends(name);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        if (strcmp(name, CASES[i].name) == 0 || (strcmp(name, "all") == 0 && i < OF_ALL))
            CASES[i].run();
    MPI_Finalize();
    return 0;
}
