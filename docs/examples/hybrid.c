/* hybrid.c: ranks of MPI with threads of OpenMP. All threads work; then each rank says on which CPUs its threads were. */
#define _GNU_SOURCE
#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 4096 };

/* It comes nearer to 1 with each round. */
static double work(long rounds)
{
    double value = 2;
    for (long i = 0; i < rounds; i++)
        value = value * 0.999999 + 1e-6;
    return value;
}

/* The work is that of all threads of all ranks together. Returns their sum, and where they were. */
static double together(long rounds, char line[LINE])
{
    int threads = omp_get_max_threads();
    int *cpus = calloc((size_t)threads, sizeof *cpus);
    double sum = 0;
    if (!cpus)
        MPI_Abort(MPI_COMM_WORLD, 1);
#pragma omp parallel reduction(+ : sum)
    {
        sum += work(rounds / threads);
        cpus[omp_get_thread_num()] = sched_getcpu();
    }
    int used = snprintf(line, LINE, "CPUs");
    for (int i = 0; i < threads && used < LINE - 16; i++)
        used += snprintf(line + used, (size_t)(LINE - used), " %d", cpus[i]);
    free(cpus);
    return sum;
}

int main(int argc, char **argv)
{
    int provided, rank, ranks;
    char line[LINE];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long rounds = argc > 1 ? atol(argv[1]) : 400000000;
    double began = MPI_Wtime(), sum = together(rounds / ranks, line), all;
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double took = MPI_Wtime() - began;
    for (int from = 0; rank == 0 && from < ranks; from++) {
        if (from)
            MPI_Recv(line, LINE, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("rank %d: %s\n", from, line);
    }
    if (rank)
        MPI_Send(line, LINE, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    else
        printf("sum %.0f in %.2f s\n", all, took);
    MPI_Finalize();
    return 0;
}
