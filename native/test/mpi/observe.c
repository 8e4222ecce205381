/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* observe LIBRARY RANKS CALLS COMMAND...: runs an MPI program with the library, and checks what its ranks have written. CALLS is
 * a list such as Barrier=10,Allreduce=20 of what each rank calls on MPI_COMM_WORLD. Fails if something else was written. */
#define _GNU_SOURCE
#include "mpi/layout.h"
#include "mpi/functions.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define AS_NAME(name, lower, count) #name,
static const char *const NAMES[] = {OPERATIONS(AS_NAME)};
static bool has_failed;

static void expect(bool holds, const char *what, unsigned long long found)
{
    if (!holds)
        printf("%s: %llu\n", what, found);
    has_failed |= !holds;
}

static struct mpi_file *make(char *variable, size_t bytes)
{
    int descriptor = memfd_create("calls", 0);
    if (descriptor < 0 || ftruncate(descriptor, sizeof(struct mpi_file)) != 0)
        exit(2);
    struct mpi_file *file = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (file == MAP_FAILED)
        exit(2);
    file->header.magic = MPI_FILE_MAGIC;
    file->header.version = getenv("OBSERVE_VERSION") ? 99 : MPI_FILE_VERSION;
    file->header.token = 0xbeef;
    file->header.ns_per_tick = UINT64_C(1) << 32;
    snprintf(variable, bytes, "/proc/%d/fd/%d:beef", (int)getpid(), descriptor);
    return file;
}

static bool is_of(const struct mpi_cell *cell, uint64_t place, int operation)
{
    uint64_t key = cell->key - 1;
    return cell->key && key >> 12 == place && (key >> 6 & 63) == (uint64_t)operation;
}

static uint64_t calls_of(struct mpi_process *rank, uint64_t place, int operation, uint64_t *bytes)
{
    uint64_t calls = 0;
    for (int i = 0; i < CELLS; i++) {
        if (is_of(&rank->cells[i], place, operation)) {
            calls += rank->cells[i].calls;
            *bytes += rank->cells[i].bytes;
        }
    }
    return calls;
}

/* The place of MPI_COMM_WORLD. */
static uint64_t world_of(struct mpi_process *rank)
{
    for (uint64_t i = 0; i < COMMUNICATORS; i++)
        if (rank->communicators[i].key && strcmp(rank->communicators[i].name, "MPI_COMM_WORLD") == 0)
            return i;
    return COMMUNICATORS;
}

static void check_rank(struct mpi_process *rank, const char *calls, uint64_t size)
{
    char list[512];
    uint64_t bytes = 0, world = world_of(rank);
    snprintf(list, sizeof list, "%s", calls);
    expect(rank->state == 1 && rank->size == size && rank->rank < size, "state of a rank", rank->rank);
    expect(world < COMMUNICATORS, "no MPI_COMM_WORLD in rank", rank->rank);
    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
        char *equals = strchr(word, '=');
        *equals = 0;
        for (int i = 0; i < OPERATION_COUNT; i++)
            if (strcmp(NAMES[i], word) == 0) {
                uint64_t found = calls_of(rank, strncmp(word, "Wait", 4) == 0 ? COMMUNICATORS - 1 : world, i, &bytes);
                expect(found == strtoull(equals + 1, NULL, 10), word, found);
            }
    }
}

/* How many calls of a rank were the library's, such as 39,0,40,80. */
static void check_served(struct mpi_process *rank, const char *wanted)
{
    char found[128];
    snprintf(found, sizeof found, "%llu,%llu,%llu,%llu", (unsigned long long)rank->served[0], (unsigned long long)rank->served[1],
             (unsigned long long)rank->served[2], (unsigned long long)rank->served[3]);
    if (strcmp(found, wanted) != 0)
        printf("collectives of the library: %s, because of '%.160s'\n", found, rank->obstacle);
    has_failed |= strcmp(found, wanted) != 0;
}

/* How often others waited for a rank, and for any. */
static void check_late(struct mpi_file *file, uint64_t ranks)
{
    uint64_t for_one = 0, all = 0, judged = 0, calls = 0;
    for (uint64_t at = 0; at < ranks; at++)
        for (uint64_t to = 0; to < RANKS; to++) {
            all += file->processes[at].pairs[to].waited_ticks;
            for_one += to == 1 ? file->processes[at].pairs[to].waited_ticks : 0;
        }
    for (uint64_t at = 0; at < ranks; at++)
        for (int i = 0; i < CELLS; i++)
            if (((file->processes[at].cells[i].key - 1) >> 6 & 63) == OP_Barrier && file->processes[at].cells[i].key) {
                judged += file->processes[at].cells[i].judged_calls;
                calls += file->processes[at].cells[i].calls;
            }
    /* It sleeps before each call. Beside other programs the other one is late too, since it has no CPU; if ranks were confused,
     * nobody would wait for rank 1. */
    expect(all > 0 && for_one * 4 > all, "rank 1 is not late, in percent", all ? 100 * for_one / all : 0);
    expect(judged * 2 > calls, "few barriers are judged, in percent", calls ? 100 * judged / calls : 0);
}

/* Not all barriers are read, and the sums are those of all. */
static void check_weights(struct mpi_process *rank)
{
    uint64_t world = world_of(rank);
    for (int i = 0; i < CELLS; i++) {
        struct mpi_cell *cell = &rank->cells[i];
        if (!is_of(cell, world, OP_Barrier))
            continue;
        expect(cell->judged_calls * 6 > cell->calls, "few barriers are judged", cell->judged_calls);
        expect(cell->judged_ticks * 2 > cell->ticks && cell->judged_ticks < cell->ticks * 2,
               "the time of judged barriers is not that of all, in percent", 100 * cell->judged_ticks / cell->ticks);
        expect(cell->waited_ticks <= cell->judged_ticks, "more is waited for than is judged", cell->waited_ticks);
    }
}

int main(int count, char **words)
{
    char variable[64];
    if (count < 5)
        return 2;
    struct mpi_file *file = make(variable, sizeof variable);
    uint64_t ranks = strtoull(words[2], NULL, 10);
    pid_t child = fork();
    if (child == 0) {
        setenv("NUMA_MPI", variable, 1);
        setenv("LD_PRELOAD", words[1], 1);
        execvp(words[4], words + 4);
        _exit(127);
    }
    int status = 1;
    waitpid(child, &status, 0);
    expect(status == (getenv("OBSERVE_STATUS") ? atoi(getenv("OBSERVE_STATUS")) << 8 : 0), "status", (unsigned)status);
    expect(file->header.ranks == ranks, "ranks", file->header.ranks);
    for (uint64_t at = 0; at < file->header.ranks && at < ranks; at++)
        check_rank(&file->processes[at], words[3], ranks);
    for (uint64_t at = 0; getenv("OBSERVE_SERVED") && at < file->header.ranks && at < ranks; at++)
        check_served(&file->processes[at], getenv("OBSERVE_SERVED"));
    for (uint64_t at = 0; getenv("OBSERVE_WEIGHTS") && at < file->header.ranks && at < ranks; at++)
        check_weights(&file->processes[at]);
    if (getenv("OBSERVE_LATE"))
        check_late(file, ranks);
    return has_failed;
}
