/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "meeting.h"
#include "nodes.h"
#include "os.h"
#include "pays.h"
#include "settings.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Each rank has room for the communicators of which it is the first rank: so nobody waits for a lock that a dead rank holds. */
enum { AREAS = 1024, COPIES_OF_WORLD = 4, LEAST_ROOM = 4 << 20 };

struct area {
    uint64_t offset;
    uint64_t uses;
    int parts;
};

struct shared *meeting;

static int file = -1, own_rank = -1;
static uint64_t identity, room, mapped;
static struct area areas[AREAS];
static int area_count;
static uint64_t area_end;

static bool fail(const char **reason, const char *what, long error)
{
    static char text[160];
    snprintf(text, sizeof text, "%s: %s", what, strerror((int)-error));
    *reason = text;
    return false;
}

static bool is_right(const struct shared *found, uint64_t job)
{
    return found->magic == SHARED_MAGIC && found->version == SHARED_VERSION && found->job == job;
}

/* Opens what the first rank has made. */
static bool join(pid_t first, const char *name, uint64_t job, const char **reason)
{
    int found = os_memory_file_of(first, name);
    if (found < 0)
        return fail(reason, "the memory of the first rank on this machine cannot be opened", found);
    struct shared *there = os_map_file(found, sizeof *there);
    if (there && is_right(there, job)) {
        meeting = there;
        file = found;
        return true;
    }
    if (there)
        os_unmap(there, sizeof *there);
    os_close(found);
    return fail(reason, "the memory of the first rank on this machine is another one", -EINVAL);
}

/* Makes it, unless another rank is faster: then that is the result. */
static int make(const char *name, uint64_t job, const char *library)
{
    int made = os_memory_file(name, sizeof(struct shared));
    if (made < 0)
        return made;
    struct shared *fresh = os_map_file(made, sizeof *fresh);
    int result = fresh ? 0 : -ENOMEM;
    if (fresh) {
        fresh->magic = SHARED_MAGIC;
        fresh->version = SHARED_VERSION;
        fresh->job = job;
        fresh->mode = settings()->collectives;
        if (settings()->collectives == AUTO && settings()->table)
            fresh->rows = pays_read(settings()->table, library, fresh->table);
        result = os_be_first(name);
    }
    if (result == 0) {
        meeting = fresh;
        file = made;
        return 0;
    }
    if (fresh)
        os_unmap(fresh, sizeof *fresh);
    os_close(made);
    return result;
}

bool meeting_come(uint64_t job, const char *library, const char **reason)
{
    enum { TRIES = 10000, BETWEEN = 100000 };
    char name[40];
    snprintf(name, sizeof name, "numampi-%llx", (unsigned long long)job);
    int error = -EAGAIN;
    for (int try = 0; try < TRIES && !meeting; try++) {
        long first = os_first(name);
        if (first < 0 && first != -EAGAIN)
            return fail(reason, "the ranks on this machine cannot meet", first);
        if (first > 0 && !join((pid_t)first, name, job, reason))
            return false;
        error = first == 0 ? make(name, job, library) : -EAGAIN;
        if (error != 0 && error != -EADDRINUSE && error != -EAGAIN)
            return fail(reason, "there is no memory that ranks can share", error);
        if (!meeting)
            os_sleep(BETWEEN);
    }
    if (!meeting)
        return fail(reason, "the ranks on this machine did not meet", error);
    identity = os_identity(file);
    atomic_fetch_add(&meeting->begun, 1);
    return true;
}

static uint64_t room_of(int world)
{
    uint64_t bytes = sizeof(struct part) * (uint64_t)world * COPIES_OF_WORLD;
    return bytes > LEAST_ROOM ? bytes : LEAST_ROOM;
}

static void describe(struct attendee *own, int rank, int world)
{
    uint64_t mask[MASK_WORDS];
    os_mask_of_process(mask, sizeof mask);
    int node = settings()->nodes ? (int)((int64_t)rank * settings()->nodes / world) : node_of_mask(mask);
    own->node = (uint64_t)(int64_t)(node + 1);
    for (int i = 0; i < CPU_WORDS; i++)
        own->cpus[i] = mask[i];
}

/* Maps all parts, and says that this rank is there. */
static bool enter(int rank, int world, const char **reason)
{
    uint64_t none = 0;
    if (world > RANKS)
        return fail(reason, "there are more than 1024 ranks", -E2BIG);
    if (!atomic_compare_exchange_strong(&meeting->world, &none, (uint64_t)world) && none != (uint64_t)world)
        return fail(reason, "two jobs on this machine have the same name", -EEXIST);
    room = room_of(world);
    mapped = sizeof(struct shared) + room * (uint64_t)world;
    int error = os_grow(file, mapped);
    if (error == -EFBIG)
        return fail(reason, "the limit on the size of files is lower than the memory of the ranks (ulimit -f unlimited)", error);
    struct shared *all = error ? NULL : os_map_file(file, mapped);
    if (!all)
        return fail(reason, "the memory of the ranks cannot be mapped", error ? error : -ENOMEM);
    os_unmap(meeting, sizeof *meeting);
    meeting = all;
    struct attendee *own = &meeting->attendees[rank];
    uint64_t nobody = 0, undecided = UNDECIDED;
    if (!atomic_compare_exchange_strong(&own->pid, &nobody, (uint64_t)os_process()))
        return fail(reason, "two jobs on this machine have the same name", -EEXIST);
    describe(own, rank, world);
    own_rank = rank;
    area_end = sizeof(struct shared) + room * (uint64_t)rank;
    if (!atomic_compare_exchange_strong(&own->state, &undecided, PRESENT))
        return fail(reason, "other ranks went on before this one was there", -ETIME);
    return true;
}

bool meeting_attend(int rank, int world, bool may, const char **reason)
{
    uint64_t undecided = UNDECIDED;
    if (!may && rank < RANKS)
        atomic_compare_exchange_strong(&meeting->attendees[rank].state, &undecided, ABSENT);
    bool is_there = may && enter(rank, world, reason);
    atomic_fetch_add(&meeting->attended, 1);
    return is_there;
}

bool meeting_has(int rank, void (*progress)(void))
{
    enum { TRIES = 100000, BETWEEN = 100000 };
    if (rank < 0 || rank >= RANKS)
        return false;
    struct attendee *other = &meeting->attendees[rank];
    /* Those that came will be there soon: MPI_Init of one rank ends when all ranks have begun theirs, or not much earlier. */
    for (int try = 0; try < TRIES && atomic_load(&other->state) == UNDECIDED &&
                      atomic_load(&meeting->begun) != atomic_load(&meeting->attended); try++) {
        progress();
        os_sleep(BETWEEN);
    }
    uint64_t state = UNDECIDED;
    return !atomic_compare_exchange_strong(&other->state, &state, ABSENT) && state == PRESENT;
}

struct part *meeting_parts(uint64_t offset, int parts)
{
    uint64_t bytes = sizeof(struct part) * (uint64_t)parts;
    if (offset < sizeof(struct shared) || offset % 4096 || offset > mapped || bytes > mapped - offset)
        return NULL;
    return (struct part *)((char *)meeting + offset);
}

/* One that all of its ranks have left. */
static struct area *free_area(int parts)
{
    for (int i = 0; i < area_count; i++) {
        struct part *first = meeting_parts(areas[i].offset, parts);
        if (areas[i].parts == parts && atomic_load_explicit(&first->left, memory_order_acquire) == (uint64_t)parts) {
            first->left = 0;
            for (int slot = 0; slot < UP; slot++)
                first->arrived[slot] = 0;
            return &areas[i];
        }
    }
    return NULL;
}

static struct area *new_area(int parts, const int *nodes)
{
    uint64_t bytes = sizeof(struct part) * (uint64_t)parts, end = sizeof(struct shared) + room * (uint64_t)(own_rank + 1);
    if (area_count == AREAS || bytes > end - area_end)
        return NULL;
    struct part *first = meeting_parts(area_end, parts);
    for (int i = 0; nodes && i < parts; i++)
        os_prefer_node(&first[i], sizeof *first, nodes[i]);
    if (os_take(file, identity, area_end, bytes) != 0)
        return NULL;
    struct area *area = &areas[area_count++];
    area->offset = area_end;
    area->parts = parts;
    area_end += bytes;
    return area;
}

uint64_t meeting_take(int parts, const int *nodes, uint64_t *base)
{
    enum { BITS_OF_ONE_USE = 40 };
    struct area *area = free_area(parts);
    if (!area)
        area = new_area(parts, nodes);
    if (!area)
        return 0;
    *base = ++area->uses << BITS_OF_ONE_USE;
    return area->offset;
}
