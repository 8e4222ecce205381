/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "collectives.h"
#include "job.h"
#include "measure.h"
#include "meeting.h"
#include "os.h"
#include "pays.h"
#include "settings.h"
#include "tally.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A team is made when a communicator is used so often, and at once where values are combined: their order must not change. */
enum { USES = 3 };

struct served_communicator {
    enum { FRESH, OURS, PASSES } state;
    int uses;
    int most[SERVED_COUNT];         /* bytes up to which an operation pays; -1: never */
    struct team team;
    struct served_communicator *next;
};

/* Communicators that were used last, by their handles. */
enum { RECENT = 8 };
static struct {
    uintptr_t handle;
    struct served_communicator *communicator;
} recent[RECENT];

static const char NO_MEMORY[] = "libnumampi.so: there is no memory for a communicator\n";
static const struct mpi_table *mpi;
static struct served_communicator *unused;
static const char *obstacle;
static bool is_coming, is_wrong, has_printed;
static int world_rank;
/* Of this rank; in the file of the report, if there is one. */
static word own_counts[SERVED_COUNT], own_teams, *served_calls = own_counts, *teams_made = &own_teams;
static char library[1024];         /* the text of MPI_Get_library_version */

static void say(const char *what, const char *more)
{
    char text[512];
    /* At once, since other ranks print too. */
    snprintf(text, sizeof text, "libnumampi.so: %s%s\n", what, more);
    os_print(text);
}

static void complain(const char *name, const char *value, const char *example)
{
    char text[256];
    snprintf(text, sizeof text, "%s is '%.100s'; write it like %s=%s. It has no effect", name, value, name, example);
    say(text, "");
}

/* Before it is known which rank this is. */
static void complain_later(const char *name, const char *value, const char *example)
{
    (void)name;
    (void)value;
    (void)example;
    is_wrong = true;
}

void collectives_come(const struct mpi_table *table)
{
    settings_read(environ ? environ : (char *[]){NULL}, complain_later);
    if (settings()->collectives == OF_THE_MPI)
        return;
    table->version(library, sizeof library);
    is_coming = meeting_come(job_of(environ), library, &obstacle);
}

static int present_ranks(uint64_t cpus[CPU_WORDS], const int *ranks, int count)
{
    int present = 0;
    memset(cpus, 0, sizeof *cpus * CPU_WORDS);
    for (int i = 0; i < count; i++) {
        struct attendee *one = &meeting->attendees[ranks ? ranks[i] : i];
        if (atomic_load_explicit(&one->state, memory_order_acquire) != PRESENT)
            continue;
        present++;
        for (int at = 0; at < CPU_WORDS; at++)
            cpus[at] |= one->cpus[at];
    }
    return present;
}

static bool are_crowded(const int *ranks, int count)
{
    uint64_t cpus[CPU_WORDS];
    int present = present_ranks(cpus, ranks, count), there = 0;
    for (int at = 0; at < CPU_WORDS; at++)
        there += __builtin_popcountll(cpus[at]);
    if (settings()->cpus)
        there = settings()->cpus;
    return present > there;
}

/* What rank 0 tells the others of a new team. */
struct grant {
    uint64_t offset, base, is_crowded;
};

/* Of a communicator that is set up. */
struct members {
    int size, rank;
    int world[RANKS], nodes[RANKS];
};

static bool all_attend(struct members *members)
{
    for (int i = 0; i < members->size; i++) {
        if (!meeting_has(members->world[i], team_calls.progress))
            return false;
        members->nodes[i] = (int)(int64_t)meeting->attendees[members->world[i]].node - 1;
    }
    return true;
}

static struct grant ask(const struct members *members)
{
    struct grant grant = {0};
    bool has_nodes = false;
    for (int i = 1; i < members->size; i++)
        has_nodes |= members->nodes[i] != members->nodes[0];
    grant.offset = meeting_take(members->size, has_nodes && !settings()->nodes ? members->nodes : NULL, &grant.base);
    grant.is_crowded = are_crowded(members->world, members->size) || are_crowded(NULL, (int)meeting->world);
    return grant;
}

/* All ranks of the communicator come here in the same call. */
static bool make_team(uintptr_t handle, struct members *members, struct team *team)
{
    struct grant grant = {0};
    if (!all_attend(members))
        return false;
    bool is_made = groups_begin(&team->groups, members->nodes, members->size);
    if (is_made && members->rank == 0)
        grant = ask(members);
    /* A rank without memory still has to get what the others get. */
    bool is_told = mpi->agree(handle, &grant, sizeof grant);
    team->parts = is_told ? meeting_parts(grant.offset, members->size) : NULL;
    if (team->parts && !is_made)
        team_calls.abort(NO_MEMORY);
    if (!team->parts || !is_made)
        return false;
    team->rank = members->rank;
    team->size = members->size;
    team->is_crowded = grant.is_crowded;
    team_begin(team, grant.base);
    add_to(teams_made, 1);
    return true;
}

static void set_up(uintptr_t handle, struct served_communicator *communicator)
{
    static struct members members;
    members.size = mpi->size(handle);
    members.rank = mpi->rank(handle);
    bool is_known = members.size > 0 && mpi->members(handle, members.size, members.world);
    communicator->state = is_known && make_team(handle, &members, &communicator->team) ? OURS : PASSES;
    if (communicator->state == PASSES)
        groups_end(&communicator->team.groups);
}

static struct served_communicator *new_communicator(void)
{
    enum { AT_ONCE = 16 };
    if (!unused) {
        struct served_communicator *more = os_allocate(sizeof *more * AT_ONCE, 0);
        for (int i = 0; more && i < AT_ONCE; i++) {
            more[i].next = unused;
            unused = &more[i];
        }
    }
    struct served_communicator *fresh = unused;
    if (!fresh)
        return NULL;
    unused = fresh->next;
    memset(fresh, 0, sizeof *fresh);
    return fresh;
}

static struct served_communicator *meet(uintptr_t handle)
{
    struct served_communicator *fresh = new_communicator();
    bool pays = false;
    /* The other ranks would wait for this one. */
    if (!fresh) {
        team_calls.abort(NO_MEMORY);
        return NULL;
    }
    int size = mpi->size(handle);
    for (int i = 0; i < SERVED_COUNT; i++) {
        fresh->most[i] = pays_up_to(meeting, (enum served)i, size);
        pays |= fresh->most[i] >= 0;
    }
    fresh->state = pays && size > 1 && size <= RANKS ? FRESH : PASSES;
    if (!mpi->keep(handle, fresh))
        team_calls.abort(NO_MEMORY);
    return fresh;
}

static size_t place_of(uintptr_t handle)
{
    return (size_t)(handle * UINT64_C(0x9e3779b97f4a7c15) >> 61) % RECENT;
}

static __attribute__((noinline)) struct served_communicator *look_up(uintptr_t handle)
{
    void *kept = NULL;
    size_t place = place_of(handle);
    /* The MPI says what is wrong with the handle. */
    if (handle == 0 || !mpi->kept(handle, &kept))
        return NULL;
    struct served_communicator *known = kept ? kept : meet(handle);
    recent[place].handle = handle;
    recent[place].communicator = known;
    return known;
}

static __attribute__((noinline)) bool becomes_served(uintptr_t handle, struct served_communicator *communicator,
                                                     enum served operation)
{
    if (communicator->state == FRESH && (++communicator->uses >= USES || operation >= SERVED_Reduce))
        set_up(handle, communicator);
    return communicator->state == OURS;
}

struct team *collectives_team(uintptr_t handle, enum served operation, size_t bytes)
{
    size_t place = place_of(handle);
    struct served_communicator *communicator =
        recent[place].handle == handle ? recent[place].communicator : look_up(handle);
    if (!communicator || (int)bytes > communicator->most[operation])
        return NULL;
    if (communicator->state != OURS && !becomes_served(handle, communicator, operation))
        return NULL;
    add_to(&served_calls[operation], 1);
    return &communicator->team;
}

void collectives_forget(uintptr_t handle, void *kept)
{
    struct served_communicator *communicator = kept;
    size_t place = place_of(handle);
    if (recent[place].handle == handle)
        recent[place].handle = 0;
    /* The last rank that leaves gives the memory back: others may still read there. */
    if (communicator->state == OURS) {
        atomic_fetch_add(&communicator->team.parts->left, 1);
        groups_end(&communicator->team.groups);
    }
    communicator->next = unused;
    unused = communicator;
}

static bool may_attend(int level, int size)
{
    if (size < 2)
        obstacle = "there is one rank";
    else if (level == 3)
        obstacle = "the program has MPI_THREAD_MULTIPLE";
    else if (meeting->mode == AUTO && meeting->rows == 0)
        obstacle = pays_lack(settings()->table, library, size);
    else if (meeting->mode == MEASURE && !settings()->table)
        obstacle = "NUMAMPI_COLLECTIVES is measure, and NUMAMPI_TABLE names no file for the result";
    else if (!mpi->can_serve())
        obstacle = "it lacks a function that is needed";
    else
        return true;
    return false;
}

/* Measures all, or says why not. The program does not go on: a rank would wait for ranks that have measured. */
static _Noreturn void measure_and_end(int size, bool is_told)
{
    static char text[80];
    for (int i = 0; is_coming && i < size; i++)
        if (!meeting_has(i, team_calls.progress)) {
            snprintf(text, sizeof text, "rank %d is on another machine, or lacks libnumampi.so", i);
            obstacle = text;
            is_coming = false;
        }
    if (is_coming && collectives_team(mpi->world(), SERVED_Allreduce, sizeof(double)))
        measure(mpi, library, world_rank, size);
    if (is_coming)
        obstacle = "there is no memory for the ranks";
    if (!is_told)
        measure_refused(obstacle);
    /* Ranks without the library would wait for this one. */
    if (meeting && atomic_load(&meeting->begun) == (uint64_t)size)
        mpi->finish();
    else
        mpi->abort("");
    exit(1);
}

/* To the file of the report, if there is one. */
static void report(void)
{
    static_assert(SERVED_COUNT == sizeof tally_own->served / sizeof *tally_own->served, "each has a number in the file");
    if (!tally_own)
        return;
    set(&tally_own->collectives, is_coming ? meeting->mode : settings()->collectives);
    if (!is_coming)
        snprintf(tally_own->obstacle, sizeof tally_own->obstacle, "%s", obstacle);
    served_calls = tally_own->served;
    teams_made = &tally_own->teams;
}

void collectives_begin(const struct mpi_table *table)
{
    if (mpi || (settings()->collectives == OF_THE_MPI && !is_wrong))
        return;
    mpi = table;
    world_rank = table->rank(table->world());
    if (is_wrong && world_rank == 0)
        settings_read(environ, complain);
    if (settings()->collectives == OF_THE_MPI)
        return;
    int size = table->size(table->world());
    bool measures = settings()->collectives == MEASURE, may = is_coming && may_attend(table->thread_level(), size);
    /* Before other ranks find that this one does not attend. */
    if (measures && !may)
        measure_refused(obstacle);
    is_coming = is_coming && meeting_attend(world_rank, size, may, &obstacle);
    if (is_coming)
        table->serve();
    if (measures)
        measure_and_end(size, !may);
    report();
    if (world_rank != 0 || size < 2)
        return;
    const char *lack = is_coming && meeting->mode == AUTO ? pays_lack(settings()->table, library, size) : obstacle;
    if (lack)
        say(is_coming ? "collectives of all ranks are those of the MPI: " : "collectives are those of the MPI: ", lack);
}

void collectives_end(void)
{
    char text[256];
    if (!is_coming || !settings()->has_statistics || has_printed)
        return;
    has_printed = true;
    snprintf(text, sizeof text, "rank %d: %llu communicators, %llu barriers, %llu broadcasts, %llu reduces, %llu allreduces", world_rank,
             (unsigned long long)*teams_made, (unsigned long long)served_calls[0], (unsigned long long)served_calls[1],
             (unsigned long long)served_calls[2], (unsigned long long)served_calls[3]);
    say(text, "");
}
