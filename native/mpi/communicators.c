/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "communicators.h"
#include "os.h"
#include "tally.h"
#include <string.h>

enum { SLOTS = 512, PROBES = 16, LAST = COMMUNICATORS - 1 };

/* MPICH numbers communicators from 0x44000000, and no MPI has one at a first address of memory. */
#define FREED ((uintptr_t)1)

struct slot {
    _Atomic uintptr_t handle;
    struct communicator *_Atomic communicator;
};

static struct slot slots[SLOTS];
static struct communicator *all;
static uint32_t used;
static const struct mpi_table *mpi;
static uint64_t job;
static atomic_bool is_busy;

void communicators_begin(const struct mpi_table *table, uint64_t number)
{
    mpi = table;
    job = number;
    all = os_allocate(sizeof *all * COMMUNICATORS, 0);
    if (all)
        all[LAST].place = LAST;
}

static uint64_t mixed(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t members_of(const struct described *described)
{
    uint64_t hash = mixed(job, (uint64_t)described->others * 2 + described->is_inter);
    for (int i = 0; i < described->others; i++)
        hash = mixed(hash, (uint64_t)(int64_t)described->world[i]);
    return hash;
}

/* A communicator with the same ranks that was freed, else a new one; NULL without room. All ranks of communicators free and make
 * them in the same order, so that their keys agree. */
static struct communicator *take(uint64_t members, uint64_t *instance)
{
    *instance = 0;
    for (uint32_t at = 0; at < used; at++) {
        if (all[at].members != members)
            continue;
        if (!all[at].is_live)
            return &all[at];
        ++*instance;
    }
    return used < LAST ? &all[used++] : NULL;
}

static void describe_in_file(const struct communicator *communicator, const struct described *described)
{
    struct mpi_communicator *shown = &tally_own->communicators[communicator->place];
    bool is_elsewhere = false;
    for (int i = 0; i < described->others; i++)
        is_elsewhere |= described->world[i] < 0;
    memcpy(shown->name, described->name, sizeof described->name < TEXT_BYTES ? sizeof described->name : TEXT_BYTES - 1);
    set(&shown->size, (uint64_t)described->size);
    set(&shown->rank, (uint64_t)described->rank);
    set(&shown->reason, described->is_inter ? INTER : is_elsewhere ? OTHER_MACHINES : JUDGED);
    atomic_store_explicit(&shown->key, communicator->key, memory_order_release);
}

static struct communicator *begin(uintptr_t handle)
{
    struct described described = {0};
    uint64_t instance;
    if (!mpi->describe(handle, &described))
        return &all[LAST];
    uint64_t members = members_of(&described);
    struct communicator *communicator = take(members, &instance);
    if (!communicator) {
        os_unmap(described.world, sizeof(int) * (size_t)described.others);
        return &all[LAST];
    }
    communicator->is_live = true;
    if (communicator->world) {
        os_unmap(described.world, sizeof(int) * (size_t)described.others);
        return communicator;
    }
    communicator->place = (uint32_t)(communicator - all);
    communicator->members = members;
    communicator->key = mixed(members, instance + 1) | 1;
    communicator->rank = described.rank;
    communicator->size = described.size;
    communicator->others = described.others;
    communicator->world = described.world;
    describe_in_file(communicator, &described);
    return communicator;
}

static size_t slot_of(uintptr_t handle)
{
    return (size_t)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

static struct slot *find(uintptr_t handle)
{
    size_t first = slot_of(handle);
    for (size_t at = first; at < first + PROBES; at++) {
        struct slot *slot = &slots[at % SLOTS];
        uintptr_t found = atomic_load_explicit(&slot->handle, memory_order_acquire);
        if (found == handle)
            return slot;
        if (found == 0)
            break;
    }
    return NULL;
}

/* Not only looked for, so that two threads do not begin the same one. */
static __attribute__((noinline)) struct communicator *enter(uintptr_t handle)
{
    while (atomic_exchange(&is_busy, true))
        os_yield();
    struct slot *known = find(handle);
    struct communicator *communicator = known ? atomic_load(&known->communicator) : &all[LAST];
    size_t first = slot_of(handle);
    for (size_t at = first; !known && at < first + PROBES; at++) {
        struct slot *slot = &slots[at % SLOTS];
        uintptr_t found = atomic_load(&slot->handle);
        if (found > FREED)
            continue;
        communicator = begin(handle);
        atomic_store(&slot->communicator, communicator);
        atomic_store_explicit(&slot->handle, handle, memory_order_release);
        break;
    }
    atomic_store(&is_busy, false);
    return communicator;
}

struct communicator *communicator_of(uintptr_t handle)
{
    if (handle == NO_COMMUNICATOR)
        return &all[LAST];
    struct slot *slot = find(handle);
    return slot ? atomic_load_explicit(&slot->communicator, memory_order_relaxed) : enter(handle);
}

void communicator_forget(uintptr_t handle)
{
    while (atomic_exchange(&is_busy, true))
        os_yield();
    struct slot *slot = handle > FREED ? find(handle) : NULL;
    if (slot) {
        atomic_load(&slot->communicator)->is_live = false;
        atomic_store(&slot->handle, FREED);
    }
    atomic_store(&is_busy, false);
}

void communicators_each(void (*function)(struct communicator *communicator))
{
    for (uint32_t at = 0; all && at < used; at++)
        function(&all[at]);
}
