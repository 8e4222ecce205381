/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ratios [ROUNDS [CALLS]]: how long collectives take, MPI_*, in units of those of the MPI itself. In each round both are
 * timed, in turns; a ratio is the median of those of the rounds. Prints the lines of a table for NUMAMPI_TABLE where the ratio is
 * below 1. */
#include "check_mpi.h"

enum { MOST = 4096, ROUNDS_AT_MOST = 1001 };
static const int SIZES[] = {8, 48, 256, 1024, 4096};
static const char *const NAMES[] = {"Barrier", "Bcast", "Reduce", "Allreduce"};
static double in[MOST / 8], out[MOST / 8];

static void call(int which, int own, int count, int number)
{
    /* Otherwise caches may have the answer. */
    in[0] = number;
    if (which == 0)
        (own ? MPI_Barrier : OF_THE_MPI(MPI_Barrier))(MPI_COMM_WORLD);
    else if (which == 1)
        (own ? MPI_Bcast : OF_THE_MPI(MPI_Bcast))(in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    else if (which == 2)
        (own ? MPI_Reduce : OF_THE_MPI(MPI_Reduce))(in, out, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    else
        (own ? MPI_Allreduce : OF_THE_MPI(MPI_Allreduce))(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Microseconds of a call, in the rank that takes longest. */
static double time_of(int which, int own, int count, int calls)
{
    double longest, time;
    OF_THE_MPI(MPI_Barrier)(MPI_COMM_WORLD);
    OF_THE_MPI(MPI_Barrier)(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < calls; i++)
        call(which, own, count, i);
    time = (MPI_Wtime() - begin) * 1e6 / calls;
    OF_THE_MPI(MPI_Allreduce)(&time, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

static int before(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, before);
    return values[count / 2];
}

static double ratio_of(int which, int bytes, int rounds, int calls)
{
    static double own[ROUNDS_AT_MOST], theirs[ROUNDS_AT_MOST], ratios[ROUNDS_AT_MOST];
    int count = bytes / 8;
    for (int round = -2; round < rounds; round++) {
        double time[2];
        for (int turn = 0; turn < 2; turn++) {
            int is_own = (turn + round) & 1;
            time[is_own] = time_of(which, is_own, count, calls);
        }
        if (round < 0)
            continue;
        own[round] = time[1];
        theirs[round] = time[0];
        ratios[round] = time[1] / time[0];
    }
    double ratio = median(ratios, rounds);
    if (rank == 0)
        printf("%-9s %4d bytes %2d ranks: %8.3f us, the MPI's %8.3f us, ratio %.3f\n", NAMES[which], which ? bytes : 0, size,
               median(own, rounds), median(theirs, rounds), ratio);
    fflush(stdout);
    return ratio;
}

/* The longest run of sizes from the least one on for which it pays. */
static int pays_up_to(int which, int rounds, int calls)
{
    int most = -1, sizes = which ? (int)(sizeof SIZES / sizeof *SIZES) : 1, pays = 1;
    for (int i = 0; i < sizes; i++) {
        pays &= ratio_of(which, SIZES[i], rounds, calls) < 1;
        if (pays)
            most = which ? SIZES[i] : 0;
    }
    return most;
}

/* MPI_Comm_dup and the first sum, without those of the MPI. */
static void set_up(int rounds)
{
    double times[2][ROUNDS_AT_MOST];
    for (int round = 0; round < rounds; round++)
        for (int own = 0; own < 2; own++) {
            MPI_Comm copy;
            double one = 1, sum;
            MPI_Comm_dup(MPI_COMM_WORLD, &copy);
            OF_THE_MPI(MPI_Barrier)(copy);
            double begin = MPI_Wtime();
            (own ? MPI_Allreduce : OF_THE_MPI(MPI_Allreduce))(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, copy);
            times[own][round] = (MPI_Wtime() - begin) * 1e6;
            if (round % 2)
                MPI_Comm_free(&copy);
        }
    if (rank == 0)
        printf("first sum of a communicator: %.1f us, the MPI's %.1f us\n", median(times[1], rounds), median(times[0], rounds));
}

int main(int count, char **words)
{
    int rounds = count > 1 ? atoi(words[1]) : 101, calls = count > 2 ? atoi(words[2]) : 500, most[4], length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    begin_mpi(0);
    rounds = rounds < 1 ? 1 : rounds < ROUNDS_AT_MOST ? rounds : ROUNDS_AT_MOST;
    for (int which = 0; which < 4; which++)
        most[which] = pays_up_to(which, rounds, calls);
    set_up(rounds < 40 ? rounds : 40);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    if (rank == 0)
        printf("version: %s\n", version);
    for (int which = 0; rank == 0 && which < 4; which++)
        if (most[which] >= 0)
            printf("%s %d %d %d %s\n", NAMES[which], size, size, most[which], version);
    MPI_Finalize();
    return 0;
}
