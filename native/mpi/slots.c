/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "slots.h"
#include <stdio.h>
#include <string.h>

struct team_calls team_calls;

void team_begin(struct team *team, uint64_t base)
{
    team->number = team->known = base;
    team->kid_count = groups_kids(&team->groups, team->rank, team->kids);
    team->reader = groups_reader(&team->groups, team->rank);
    team->leader = groups_leader(&team->groups, team->groups.of[team->rank]);
    for (int i = 0; i < DOWN; i++)
        team->down[i].extra = -1;
    for (int i = 0; i < DOWN_LARGE; i++)
        team->down_large[i].extra = -1;
}

struct call call_begin(struct team *team, enum served operation, size_t bytes, int root)
{
    struct call call = {.number = team->number++, .bytes = bytes, .is_large = bytes > INLINE};
    call.what = (uint64_t)operation | (uint64_t)bytes << 8 | (uint64_t)(root + 1) << 32;
    call.line_root = team->roots[call.number % UP];
    team->roots[call.number % UP] = operation == SERVED_Reduce ? root + 1 : 0;
    if (call.is_large) {
        call.up_place = team->large % UP_LARGE;
        call.down_place = team->large % DOWN_LARGE;
        call.up_before = team->recent[(team->large + DOWN_LARGE - UP_LARGE) % DOWN_LARGE];
        call.down_before = team->recent[call.down_place];
        call.large_root = team->recent_roots[call.up_place];
        team->recent_roots[call.up_place] = operation == SERVED_Reduce ? root + 1 : 0;
        team->recent[call.down_place] = call.number + 1;
        team->large++;
    }
    return call;
}

void call_end(struct team *team, const struct call *call)
{
    struct part *own = &team->parts[team->rank];
    publish(team, own, &own->done, call->number + 1);
}

void wake(struct team *team, struct part *part, word *at)
{
    if (!team->is_crowded)
        return;
    /* A rank that sleeps has said so before it looked at the word. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&part->sleepers, memory_order_relaxed))
        os_wake_all(at);
}

void publish(struct team *team, struct part *part, word *at, uint64_t value)
{
    atomic_store_explicit(at, value, memory_order_release);
    wake(team, part, at);
}

/* Messages that are under way need this rank too, so that it never sleeps for long. */
static void sleep_until(struct part *part, word *at, uint64_t value)
{
    enum { YIELDS = 4, FIRST_SLEEP = 50000, LAST_SLEEP = 1000000 };
    for (int i = 0; i < YIELDS; i++) {
        os_yield();
        if (atomic_load_explicit(at, memory_order_acquire) >= value)
            return;
    }
    for (uint64_t time = FIRST_SLEEP;; time = time < LAST_SLEEP ? time * 2 : time) {
        team_calls.progress();
        atomic_fetch_add(&part->sleepers, 1);
        uint64_t found = atomic_load(at);
        if (found < value)
            os_sleep_on(at, (uint32_t)found, time);
        atomic_fetch_sub(&part->sleepers, 1);
        if (atomic_load_explicit(at, memory_order_acquire) >= value)
            return;
    }
}

__attribute__((noinline)) void wait_longer(struct team *team, struct part *part, word *at, uint64_t value)
{
    enum { PAUSES = 64 };
    if (team->is_crowded) {
        sleep_until(part, at, value);
        return;
    }
    for (;;) {
        team_calls.progress();
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load_explicit(at, memory_order_acquire) >= value)
                return;
            os_pause();
        }
        os_yield();
    }
}

/* Waits until a rank has completed all collectives before this one; how many it has by then. */
static uint64_t wait_done(struct team *team, int rank, uint64_t end)
{
    struct part *part = &team->parts[rank];
    wait_for(team, part, &part->done, end);
    return atomic_load_explicit(&part->done, memory_order_acquire);
}

void wait_all(struct team *team, uint64_t number)
{
    if (number < team->known)
        return;
    for (int rank = 0; rank < team->size; rank++)
        if (rank != team->rank)
            wait_done(team, rank, number + 1);
    team->known = number + 1;
}

unsigned char *up_data(struct team *team, const struct call *call, int rank)
{
    struct part *part = &team->parts[rank];
    return call->is_large ? part->up_large[call->up_place] : part->up[call->number % UP].line.data;
}

unsigned char *down_data(struct team *team, const struct call *call, int rank)
{
    struct part *part = &team->parts[rank];
    return call->is_large ? part->down_large[call->down_place] : part->down[call->number % DOWN].line.data;
}

/* The line was used for a collective of a known number, at the latest. */
static void wait_free_up(struct team *team, const struct call *call)
{
    uint64_t end = call->number - UP + 1;
    if (call->is_large) {
        struct last *large = &team->up_large[call->up_place];
        end = large->number > end ? large->number : end;
        large->number = call->number + 1;
    }
    if (end > team->known && end > team->read_up)
        team->read_up = wait_done(team, team->reader, end);
}

static void wait_root(struct team *team, int root, uint64_t end)
{
    if (end > team->known && root > 0 && root - 1 != team->rank)
        wait_done(team, root - 1, end);
}

/* Where ranks share CPUs, the root of a reduce reads what all give. What others read, all have completed. */
static void wait_roots(struct team *team, const struct call *call)
{
    wait_root(team, call->line_root, call->number - UP + 1);
    if (call->is_large)
        wait_root(team, call->large_root, call->up_before);
}

void put_up(struct team *team, const struct call *call, const void *data)
{
    struct part *own = &team->parts[team->rank];
    struct line *line = &own->up[call->number % UP].line;
    if (team->is_crowded)
        wait_roots(team, call);
    else
        wait_free_up(team, call);
    memcpy(up_data(team, call, team->rank), data, call->bytes);
    atomic_store_explicit(&line->call, call->what, memory_order_relaxed);
    publish(team, own, &line->number, call->number + 1);
}

static void describe(uint64_t what, char *text, size_t room)
{
    static const char *const NAMES[] = {"MPI_Barrier", "MPI_Bcast", "MPI_Reduce", "MPI_Allreduce", "another call"};
    unsigned operation = what & 255, bytes = (unsigned)(what >> 8 & 0xffffff), root = (unsigned)(what >> 32);
    int length = snprintf(text, room, "%s of %u bytes", NAMES[operation < SERVED_COUNT ? operation : SERVED_COUNT], bytes);
    if (root > 0)
        snprintf(text + length, room - (size_t)length, " with root %u", root - 1);
}

static __attribute__((noinline, cold)) void disagree(struct team *team, uint64_t own, uint64_t other)
{
    char text[256], here[64], there[64];
    describe(own, here, sizeof here);
    describe(other, there, sizeof there);
    snprintf(text, sizeof text, "libnumampi.so: rank %d of a communicator is in %s, and another rank in %s\n", team->rank, here, there);
    team_calls.abort(text);
}

static void wait_line(struct team *team, const struct call *call, int rank, struct line *line)
{
    wait_for(team, &team->parts[rank], &line->number, call->number + 1);
    uint64_t what = atomic_load_explicit(&line->call, memory_order_relaxed);
    if (__builtin_expect(what != call->what, false))
        disagree(team, call->what, what);
}

void *wait_up(struct team *team, const struct call *call, int rank)
{
    wait_line(team, call, rank, &team->parts[rank].up[call->number % UP].line);
    return up_data(team, call, rank);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Those that usually read what this rank gives. */
static void wait_readers(struct team *team, uint64_t end)
{
    const struct groups *groups = &team->groups;
    int group = groups->of[team->rank];
    uint64_t all = UINT64_MAX;
    for (int i = groups->begin[group]; i < groups->begin[group + 1]; i++)
        if (groups->members[i] != team->rank)
            all = earlier(all, wait_done(team, groups->members[i], end));
    for (int other = 0; other < groups->count; other++)
        if (other != group)
            all = earlier(all, wait_done(team, groups_leader(groups, other), end));
    team->read_down = all;
}

static void use_again(struct team *team, struct last *last, uint64_t number, int extra)
{
    if (last->number > team->known && last->number > team->read_down)
        wait_readers(team, last->number);
    if (last->number > team->known && last->extra >= 0)
        wait_done(team, last->extra, last->number);
    *last = (struct last){number + 1, extra};
}

/* Of a number, and of another one plus one that may be none. */
static uint64_t later(uint64_t number, uint64_t end)
{
    return end > number ? end - 1 : number;
}

void put_down(struct team *team, const struct call *call, const void *data, int extra)
{
    struct part *own = &team->parts[team->rank];
    struct line *line = &own->down[call->number % DOWN].line;
    if (team->is_crowded)
        wait_all(team, later(call->number - DOWN, call->down_before));
    else
        use_again(team, &team->down[call->number % DOWN], call->number, extra);
    if (call->is_large && !team->is_crowded)
        use_again(team, &team->down_large[call->down_place], call->number, extra);
    memcpy(down_data(team, call, team->rank), data, call->bytes);
    atomic_store_explicit(&line->call, call->what, memory_order_relaxed);
    publish(team, own, &line->number, call->number + 1);
}

void *wait_down(struct team *team, const struct call *call, int rank)
{
    wait_line(team, call, rank, &team->parts[rank].down[call->number % DOWN].line);
    return down_data(team, call, rank);
}
