/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program whose calls of MPI are known: ranks ROUNDS. Rank 1 comes last to each barrier. Each result is checked, so that an
 * observer that changes one is found. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1000 };
static int rank, size, rounds;

static void expect(const char *what, int holds)
{
    if (holds)
        return;
    printf("rank %d: %s is wrong\n", rank, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void collectives(MPI_Comm comm)
{
    double one = rank + 1, sum = 0, all[64] = {0}, many[COUNT];
    int counts[64], places[64];
    if (rank == 1)
        usleep(20000);
    MPI_Barrier(comm);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    expect("the sum", sum == size * (size + 1) / 2);
    for (int i = 0; i < COUNT; i++)
        many[i] = rank == 0 ? i : 0;
    MPI_Bcast(many, COUNT, MPI_DOUBLE, 0, comm);
    expect("the broadcast", many[COUNT - 1] == COUNT - 1);
    sum = one;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    expect("the sum in place", sum == size * (size + 1) / 2);
    all[rank] = one;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_DOUBLE, comm);
    expect("what is gathered", all[size - 1] == size);
    /* The root's own part lies in place, and its type means nothing. */
    if (rank == 0)
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_DOUBLE, 0, comm);
    else
        MPI_Gather(&one, 1, MPI_DOUBLE, NULL, 0, MPI_DATATYPE_NULL, 0, comm);
    for (int i = 0; i < size; i++) {
        counts[i] = 1;
        places[i] = i;
    }
    MPI_Gatherv(&one, 1, MPI_DOUBLE, all, counts, places, MPI_DOUBLE, size - 1, comm);
    MPI_Reduce(&one, &sum, 1, MPI_DOUBLE, MPI_MAX, 0, comm);
    expect("the maximum", rank != 0 || sum == size);
}

static void messages(MPI_Comm comm)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    double out[COUNT], in[COUNT];
    MPI_Request requests[2];
    for (int i = 0; i < COUNT; i++)
        out[i] = rank;
    MPI_Irecv(in, COUNT, MPI_DOUBLE, before, 7, comm, &requests[0]);
    MPI_Isend(out, COUNT, MPI_DOUBLE, next, 7, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    expect("a message", in[COUNT - 1] == before);
    MPI_Sendrecv(out, 1, MPI_DOUBLE, next, 8, in, 1, MPI_DOUBLE, before, 8, comm, MPI_STATUS_IGNORE);
    expect("an exchange", in[0] == before);
    MPI_Send(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 9, comm);
}

int main(int count, char **words)
{
    MPI_Comm half, copy;
    int provided;
    const char *threads = getenv("RANKS_THREADS"), *barriers = getenv("RANKS_BARRIERS");
    rounds = count > 1 ? atoi(words[1]) : 10;
    MPI_Init_thread(&count, &words, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < rounds; i++) {
        collectives(MPI_COMM_WORLD);
        messages(MPI_COMM_WORLD);
    }
    for (int more = barriers ? atoi(barriers) : 0; more > 0; more--)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_name(half, "halves");
    for (int i = 0; i < rounds; i++)
        MPI_Barrier(half);
    MPI_Comm_free(&half);
    /* Many communicators, each used once: their handles and their entries are used again. */
    for (int i = 0; i < 200; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Barrier(copy);
        MPI_Comm_free(&copy);
    }
    if (getenv("RANKS_EXIT") && rank == size - 1)
        _exit(3);
    MPI_Finalize();
    if (rank == 0)
        puts("all results are right");
    return 0;
}
