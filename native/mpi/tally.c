/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "tally.h"
#include "arrivals.h"
#include "base/environment.h"
#include "communicators.h"
#include "job.h"
#include "os.h"
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct mpi_process *tally_own;
struct mpi_file *tally_file;
bool tally_is_shared;

static char path[PATH_MAX];
static uint64_t beacon, begin_cpu;

bool tally_reserve(const void *part, size_t bytes)
{
    return os_reserve(path, (size_t)((const char *)part - (const char *)tally_file), bytes);
}

static bool open_file(char **environment)
{
    struct observer_file found;
    const char *text = environment_find(environment, "NUMA_MPI"), *colon = text ? strrchr(text, ':') : NULL;
    if (!colon || (size_t)(colon - text) >= sizeof path || tally_file)
        return false;
    memcpy(path, text, (size_t)(colon - text));
    path[colon - text] = 0;
    if (!environment_map(environment, "NUMA_MPI", sizeof(struct mpi_file), MAP_NORESERVE, &found))
        return false;
    struct mpi_file *file = found.memory;
    if (file->header.magic != MPI_FILE_MAGIC || file->header.version != MPI_FILE_VERSION ||
        file->header.token != found.token) {
        os_unmap(found.memory, found.bytes);
        return false;
    }
    tally_file = file;
    beacon = found.token;
    return true;
}

static struct mpi_process *claim(void)
{
    uint64_t place = atomic_fetch_add(&tally_file->header.ranks, 1);
    if (place >= RANKS || !tally_reserve(&tally_file->processes[place], sizeof(struct mpi_process)))
        return NULL;
    return &tally_file->processes[place];
}

/* Whether this rank may read the memory of another one, by which MPIs copy large messages once. A filter of system calls may
 * end a process that tries. */
static void try_copy(struct mpi_process *own)
{
    uint64_t count = atomic_load(&tally_file->header.ranks), number = 0;
    if (value_of(&own->copy) != COPY_UNKNOWN)
        return;
    if (os_seccomp_filters() > 0) {
        set(&own->copy, COPY_UNTRIED);
        return;
    }
    for (uint64_t at = 0; at < count && at < RANKS; at++) {
        struct mpi_process *other = &tally_file->processes[at];
        if (other == own || atomic_load_explicit(&other->state, memory_order_acquire) != 1 ||
            value_of(&other->job) != value_of(&own->job) || value_of(&other->end_ticks))
            continue;
        long result = os_read_other((pid_t)value_of(&other->pid), value_of(&other->beacon), &number);
        bool works = result == 0 && number == beacon;
        set(&own->copy_error, result < 0 ? (uint64_t)-result : 0);
        set(&own->copy, works ? COPY_WORKS : COPY_FAILS);
        return;
    }
}

void tally_begin(const struct mpi_table *table)
{
    static struct described described;
    if (tally_own || !environ || !open_file(environ))
        return;
    struct mpi_process *own = claim();
    if (!own)
        return;
    uint64_t job = job_of(environ);
    communicators_begin(table, job);
    int level = table->thread_level();
    tally_is_shared = level == 3;
    set(&own->pid, (uint64_t)os_process());
    set(&own->job, job);
    set(&own->abi, (uint64_t)table->number);
    set(&own->thread_level, (uint64_t)level);
    set(&own->beacon, (uint64_t)(uintptr_t)&beacon);
    os_mask_of_process(own->mask, sizeof own->mask);
    table->version(own->library, sizeof own->library);
    if (table->describe(table->world(), &described)) {
        set(&own->rank, (uint64_t)described.rank);
        set(&own->size, (uint64_t)described.size);
        os_unmap(described.world, sizeof(int) * (size_t)described.others);
    }
    begin_cpu = os_time(CLOCK_PROCESS_CPUTIME_ID);
    set(&own->begin_ticks, ticks());
    atomic_store_explicit(&own->state, 1, memory_order_release);
    try_copy(own);
    tally_own = own;
}

void tally_end(void)
{
    struct mpi_process *own = tally_own;
    if (!own)
        return;
    try_copy(own);
    set(&own->cpu_ns, os_time(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu);
    set(&own->end_ticks, ticks());
}

void tally_judge_rest(void)
{
    if (!tally_own)
        return;
    /* All other ranks have come by now. A thread of the program may still be in a call, so nothing is given back. */
    communicators_each(arrivals_judge_rest);
}

/* 0 without bytes, else one more than the power of two. */
static unsigned class_of(uint64_t bytes)
{
    unsigned bits = bytes == 0 ? 0 : 64 - (unsigned)__builtin_clzll(bytes);
    return bits < 64 ? bits : 63;
}

static uint32_t cell_of(uint64_t key)
{
    enum { PROBES = 16 };
    size_t first = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 54);
    for (size_t at = first; at < first + PROBES; at++) {
        uint32_t place = (uint32_t)(at % CELLS);
        word *found = &tally_own->cells[place].key;
        uint64_t owner = value_of(found);
        if (place == CELLS - 1)
            continue;
        if (owner == key || (owner == 0 && (atomic_compare_exchange_strong(found, &owner, key) || owner == key)))
            return place;
    }
    add_to(&tally_own->full_cells, 1);
    return CELLS - 1;
}

static void note_least(word *least, uint64_t took)
{
    uint64_t before = value_of(least);
    if (before == 0 || took < before)
        set(least, took ? took : 1);
}

void tally_call(enum operation operation, uintptr_t handle, uint64_t bytes, int peer, uint64_t begin, uint64_t end)
{
    struct communicator *communicator = communicator_of(handle);
    uint64_t took = (int64_t)(end - begin) > 0 ? end - begin : 0;
    uint32_t place = cell_of(1 + class_of(bytes) + 64 * ((uint64_t)operation + 64 * (uint64_t)communicator->place));
    struct mpi_cell *cell = &tally_own->cells[place];
    add_to(&cell->calls, 1);
    add_to(&cell->ticks, took);
    add_to(&cell->bytes, bytes);
    note_least(&cell->least, took);
    if (!communicator->world)
        return;
    if (operation >= OP_Barrier) {
        arrivals_note(communicator, begin, took, place, operation, peer);
    } else if (peer >= 0 && peer < communicator->others && communicator->world[peer] >= 0) {
        int world = communicator->world[peer];
        struct mpi_pair *pair = &tally_own->pairs[world < RANKS ? world : RANKS - 1];
        add_to(&pair->messages, 1);
        add_to(&pair->bytes, bytes);
    }
}

void tally_forget(uintptr_t handle)
{
    if (tally_own)
        communicator_forget(handle);
}
