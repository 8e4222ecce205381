/* ranks message|allreduce|step     times of calls of MPI, of two ranks
 *
 * message: ns of a call with which a rank sends eight bytes to itself. allreduce: ns of the sum of a number of both. step: ns of
 * 30 us of work and such a sum. The least of some rounds, in the rank that takes longest. */
#define _GNU_SOURCE
#include "timed.h"
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static double number = 1;

static void message(void)
{
    double got;
    MPI_Sendrecv(&number, 1, MPI_DOUBLE, 0, 0, &got, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void allreduce(void)
{
    double sum;
    MPI_Allreduce(&number, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void step(void)
{
    /* A multiplication waits three cycles for the one before. */
    enum { WORK = 30000 };
    unsigned long product = 3;
    for (int i = 0; i < WORK; i++)
        __asm__ volatile("imul %0, %0" : "+r"(product) : : "cc");
    allreduce();
}

static double ns_of(void (*call)(void), int calls)
{
    enum { ROUNDS = 20 };
    double best = 1e12;
    for (int round = 0; round < ROUNDS; round++) {
        PMPI_Barrier(MPI_COMM_WORLD);
        double begin = now();
        for (int i = 0; i < calls; i++)
            call();
        double ns = (now() - begin) / calls;
        best = ns < best ? ns : best;
    }
    return best;
}

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    const char *kind = count > 1 ? words[1] : "";
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double ns = -1, longest;
    if (strcmp(kind, "message") == 0)
        ns = ns_of(message, 20000);
    else if (strcmp(kind, "allreduce") == 0)
        ns = ns_of(allreduce, 20000);
    else if (strcmp(kind, "step") == 0)
        ns = ns_of(step, 2000);
    PMPI_Allreduce(&ns, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ns %.1f\n", longest);
    MPI_Finalize();
    return ns < 0 ? 2 : 0;
}
