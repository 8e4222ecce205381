/* ranks: a job of two ranks, of which the first has four times the work of the second, which waits in MPI for it. Compiled with
 * LIBRARY it is the library of MPI: its name and its functions are what matters. */
#include <stdatomic.h>

extern int MPI_Barrier(atomic_long *arrived, long all);
extern long ompi_request_default_wait(atomic_long *arrived, long all);

#ifdef LIBRARY

/* Looks again and again, without a pause that would show it. */
__attribute__((noinline)) long ompi_request_default_wait(atomic_long *arrived, long all)
{
    long looks = 0;
    while (atomic_load(arrived) < all)
        looks++;
    return looks;
}

int MPI_Barrier(atomic_long *arrived, long all)
{
    atomic_fetch_add(arrived, 1);
    return ompi_request_default_wait(arrived, all) < 0;
}

#else

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2, STEPS = 30, SMALL = 10000000, MEMORY = 9 };

__attribute__((noinline)) static unsigned long work(long count)
{
    unsigned long sum = 1;
    for (long i = 0; i < count; i++)
        __asm__ volatile("" : "+r"(sum));
    return sum;
}

static int rank_of_job(int rank)
{
    atomic_long *arrived = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, MEMORY, 0);
    if (arrived == MAP_FAILED)
        return 1;
    unsigned long sum = 0;
    for (long step = 1; step <= STEPS; step++) {
        sum += work(rank == 0 ? 4 * SMALL : SMALL);
        MPI_Barrier(arrived, step * RANKS);
    }
    return sum == 0;
}

int main(int count, char **words)
{
    if (count > 1)
        return rank_of_job(atoi(words[1]));
    FILE *memory = tmpfile();
    if (!memory || ftruncate(fileno(memory), 4096) || dup2(fileno(memory), MEMORY) < 0)
        return 1;
    for (int rank = 0; rank < RANKS; rank++) {
        char number[2] = {(char)('0' + rank), 0};
        if (fork() == 0) {
            setenv("OMPI_COMM_WORLD_RANK", number, 1);
            execl(words[0], words[0], number, (char *)NULL);
            _exit(1);
        }
    }
    int status, failed = 0;
    while (wait(&status) > 0)
        failed |= status;
    return failed != 0;
}

#endif
