/* affinity [process|openmp|stacks]     default openmp
 *
 * Where each thread of this process may run, one line a thread:
 *
 *   rank 1 thread 0 cpus 2-3
 *
 * `process` asks for the main thread only, `openmp` for every thread of a parallel region, and
 * `stacks` says of these threads also how many pages of their stack and of their thread-local
 * memory are on the node of the CPU that they run on and how many are elsewhere:
 *
 *   rank 1 thread 0 cpus 2 node 1 here 12 elsewhere 0
 *
 * With AFFINITY_MPI=LIBRARY it is an MPI program of that library. The rank is the one that its
 * launcher gave it; without one it is `-`. The lines of a process come in one piece. */
#define _GNU_SOURCE
#include "placement.h"
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdbool.h>

#define USAGE "usage: affinity [process|openmp|stacks]"

enum { MAX_THREADS = 256, LINE = 512, TOUCHED = 64 << 10, MPICH_WORLD = 0x44000000, NO_RANK = -1 };

static __thread volatile char local_memory[40 << 10];
static char lines[MAX_THREADS][LINE];

/* The rank as Open MPI, MPICH with Intel MPI, and Slurm hand it over. */
static int given_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (getenv(names[at]))
            return number(names[at], getenv(names[at]), 0, 1 << 20);
    return NO_RANK;
}

static void *symbol(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found)
        fail("%s is not in the library of AFFINITY_MPI", name);
    return found;
}

/* Starts MPI, checks that the rank is the one that was handed over, and waits for all ranks. */
static void *start_mpi(const char *path, int rank)
{
    int own = -1, provided;
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        fail("AFFINITY_MPI: %s", dlerror());
    int (*init)(int *, char ***, int, int *) = symbol(library, "MPI_Init_thread");
    if (init(NULL, NULL, 1, &provided))
        fail("MPI does not start");
    /* A handle is a pointer in Open MPI and a number in the others. */
    void *world = dlsym(library, "ompi_mpi_comm_world");
    if (!world)
        world = (void *)(uintptr_t)MPICH_WORLD;
    int (*ask)(void *, int *) = symbol(library, "MPI_Comm_rank");
    int (*wait)(void *) = symbol(library, "MPI_Barrier");
    if (ask(world, &own) || own != rank)
        fail("MPI calls this rank %d, its launcher calls it %d", own, rank);
    if (wait(world))
        fail("MPI cannot wait for all ranks");
    return library;
}

static void end_mpi(void *library)
{
    int (*finalize)(void) = symbol(library, "MPI_Finalize");
    finalize();
}

/* The CPUs as a list such as "0-2,5". */
static void allowed_list(char *text, size_t size)
{
    int cpus[CPU_SETSIZE], count = allowed_cpus(cpus, CPU_SETSIZE);
    size_t used = 0;
    for (int at = 0; at < count && used < size; at++) {
        int first = cpus[at];
        while (at + 1 < count && cpus[at + 1] == cpus[at] + 1)
            at++;
        const char *comma = used ? "," : "";
        int more = first == cpus[at]
                       ? snprintf(text + used, size - used, "%s%d", comma, first)
                       : snprintf(text + used, size - used, "%s%d-%d", comma, first, cpus[at]);
        used += more;
    }
}

/* Pages from here to the top of the stack; those with the arguments of the program are not the
 * thread's own, so the main thread's end at `top`. */
static void stack_pages(char *top, long pages[MAX_NODES])
{
    volatile char touched[TOUCHED];
    touch_pages((void *)touched, sizeof touched);
    uintptr_t from = (uintptr_t)touched / PAGE * PAGE, to = (uintptr_t)top / PAGE * PAGE;
    count_pages((void *)from, to - from, pages);
}

static char *top_of_stack(char *of_main)
{
    pthread_attr_t attributes;
    void *bottom;
    size_t size;
    if (omp_get_thread_num() == 0)
        return of_main;
    if (pthread_getattr_np(pthread_self(), &attributes) ||
        pthread_attr_getstack(&attributes, &bottom, &size))
        fail("a thread has no known stack");
    pthread_attr_destroy(&attributes);
    return (char *)bottom + size;
}

static void look_at_stack(char *line, size_t size, char *of_main)
{
    long pages[MAX_NODES] = {0}, elsewhere = 0;
    int node = node_of_cpu(sched_getcpu());
    touch_pages((void *)local_memory, sizeof local_memory);
    stack_pages(top_of_stack(of_main), pages);
    uintptr_t from = (uintptr_t)local_memory / PAGE * PAGE;
    count_pages((void *)from, sizeof local_memory, pages);
    for (int other = 0; other < MAX_NODES; other++)
        elsewhere += other == node ? 0 : pages[other];
    snprintf(line, size, " node %d here %ld elsewhere %ld", node, pages[node], elsewhere);
}

static void look(int rank, int thread, bool stacks, char *of_main)
{
    char *line = lines[thread], cpus[LINE / 2] = "";
    allowed_list(cpus, sizeof cpus);
    char name[16] = "-";
    if (rank != NO_RANK)
        snprintf(name, sizeof name, "%d", rank);
    int used = snprintf(line, LINE, "rank %s thread %d cpus %s", name, thread, cpus);
    if (stacks)
        look_at_stack(line + used, LINE - used, of_main);
    strcat(line, "\n");
}

/* All lines in one piece, so that those of other ranks do not get between. */
static void write_lines_of(int threads)
{
    static char all[MAX_THREADS * LINE];
    size_t used = 0;
    for (int thread = 0; thread < threads; thread++)
        used += snprintf(all + used, sizeof all - used, "%s", lines[thread]);
    if (write(STDOUT_FILENO, all, used) != (ssize_t)used)
        fail("cannot write");
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "openmp";
    bool process = !strcmp(what, "process"), stacks = !strcmp(what, "stacks");
    if (count > 2 || (!process && !stacks && strcmp(what, "openmp")))
        bad_arguments(USAGE);
    char *of_main = (char *)words;
    int rank = given_rank(), threads = 1;
    const char *path = getenv("AFFINITY_MPI");
    void *mpi = path ? start_mpi(path, rank) : NULL;
    if (process) {
        look(rank, 0, false, of_main);
    } else {
        if (omp_get_max_threads() > MAX_THREADS)
            fail("%d threads, at most %d are possible", omp_get_max_threads(), MAX_THREADS);
#pragma omp parallel
        {
#pragma omp single
            threads = omp_get_num_threads();
            look(rank, omp_get_thread_num(), stacks, of_main);
        }
    }
    write_lines_of(threads);
    if (mpi)
        end_mpi(mpi);
    return 0;
}
