/* collectives COUNT
 *
 * The collectives of libnumampi in a process on each CPU, without an MPI: COUNT barriers, then COUNT allreduces of 8 bytes and of
 * 1 KiB, broadcasts of both, and reduces of 8 bytes. Each kind is a region. The last line says how many results were wrong. */
#define _GNU_SOURCE
#include "arguments.h"
#include "numakit-mark.h"
#include "placement.h"
#include "base/os_linux.c"
#include "mpi/crowded.c"
#include "mpi/groups.c"
#include "mpi/os_linux.c"
#include "mpi/slots.c"
#include "mpi/team.c"
#include <sys/wait.h>

#define USAGE "usage: collectives COUNT"
enum { MOST_RANKS = 64, FIRST = 64, WORDS = 128 };

static struct part *parts;
static int ranks, nodes[MOST_RANKS], cpus[MOST_RANKS];
static long count;
/* What all ranks share. */
static struct {
    int ready;
    long wrong;
} *together;

static void add(const void *in, void *inout, const struct reduction *reduction)
{
    const uint64_t *from = in;
    uint64_t *to = inout;
    for (int i = 0; i < reduction->count; i++)
        to[i] += from[i];
}

static void do_barrier(struct team *team, int words, long number)
{
    (void)words;
    (void)number;
    team_barrier(team);
}

static void check(const uint64_t *data, int words, uint64_t expected)
{
    for (int i = 0; i < words; i++)
        if (data[i] != expected + (uint64_t)i)
            __atomic_fetch_add(&together->wrong, 1, __ATOMIC_RELAXED);
}

static void do_broadcast(struct team *team, int words, long number)
{
    uint64_t data[WORDS] = {0};
    for (int i = 0; i < words && team->rank == 0; i++)
        data[i] = (uint64_t)(number + i);
    team_broadcast(team, data, (size_t)words * sizeof *data, 0);
    check(data, words, (uint64_t)number);
}

static uint64_t sum_of(struct team *team, int words, long number, int root, uint64_t *data)
{
    struct reduction sum = {.combine = add, .count = words};
    for (int i = 0; i < words; i++)
        data[i] = team->rank == 0 ? (uint64_t)(number + i) : (uint64_t)team->rank;
    team_reduce(team, data, data, (size_t)words * sizeof *data, &sum, root);
    return (uint64_t)(number + ranks * (ranks - 1) / 2);
}

static void do_allreduce(struct team *team, int words, long number)
{
    uint64_t data[WORDS], expected = sum_of(team, words, number, ALL_RANKS, data);
    check(data, words, expected);
}

static void do_reduce(struct team *team, int words, long number)
{
    uint64_t data[WORDS], expected = sum_of(team, words, number, 0, data);
    if (team->rank == 0)
        check(data, words, expected);
}

static const struct kind {
    void (*call)(struct team *team, int words, long number);
    int words;
} KINDS[] = {{do_barrier, 0}, {do_allreduce, 1}, {do_allreduce, WORDS}, {do_broadcast, 1}, {do_broadcast, WORDS}, {do_reduce, 1}};

static void work(int rank)
{
    struct team team = {.rank = rank, .size = ranks, .parts = parts};
    bind_to_cpu(cpus[rank]);
    /* Its memory is on its node. */
    memset((void *)&parts[rank], 0, sizeof *parts);
    if (!groups_begin(&team.groups, nodes, ranks))
        fail("no memory");
    team_begin(&team, FIRST);
    __atomic_fetch_add(&together->ready, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&together->ready, __ATOMIC_ACQUIRE) < ranks)
        sched_yield();
    for (size_t kind = 0; kind < sizeof KINDS / sizeof *KINDS; kind++) {
        /* Twice: what is used for the first time is fetched, and the lines of the first collectives are remembered. */
        for (long i = 0; i < 2 * DOWN; i++)
            KINDS[kind].call(&team, KINDS[kind].words, i);
        team_barrier(&team);
        if (rank == 0)
            NUMAKIT_MARK_BEGIN();
        for (long i = 0; i < count; i++)
            KINDS[kind].call(&team, KINDS[kind].words, i);
        team_barrier(&team);
        if (rank == 0)
            NUMAKIT_MARK_END();
        team_barrier(&team);
    }
}

static void do_nothing(void)
{
}

static void end(const char *text)
{
    fail("%s", text);
}

int main(int words, char **word)
{
    if (words != 2)
        bad_arguments(USAGE);
    count = number("COUNT", word[1], 1, 1000000);
    ranks = allowed_cpus(cpus, MOST_RANKS);
    if (ranks < 2)
        fail("there is one CPU, and a team has two ranks at least");
    for (int rank = 0; rank < ranks; rank++)
        nodes[rank] = node_of_cpu(cpus[rank]);
    team_calls = (struct team_calls){.progress = do_nothing, .abort = end};
    int flags = MAP_SHARED | MAP_ANONYMOUS;
    parts = mmap(NULL, sizeof *parts * (size_t)ranks, PROT_READ | PROT_WRITE, flags, -1, 0);
    together = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (parts == MAP_FAILED || together == MAP_FAILED)
        fail("no memory");
    for (int rank = 1; rank < ranks; rank++) {
        pid_t child = fork();
        if (child < 0)
            fail("no process: %s", strerror(errno));
        if (child == 0) {
            work(rank);
            return 0;
        }
    }
    work(0);
    for (int status; wait(&status) > 0;)
        if (status != 0)
            fail("a rank ended with status %d", status);
    printf("ranks %d\nwrong %ld\n", ranks, together->wrong);
    return 0;
}
