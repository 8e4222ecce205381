/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Collectives of ranks that share CPUs. A rank that comes too early is in the way of those that it waits for: it sleeps, once in
 * each collective. The last rank that comes does the work of all, in the same order as ranks that have CPUs of their own. */
#include "slots.h"
#include <string.h>

/* Counts this rank; whether it is the last one. */
static bool arrive(struct team *team, word **at, uint64_t *all)
{
    struct part *first = team->parts;
    uint64_t uses = team->counted++;
    *at = &first->arrived[uses % UP];
    *all = (uses / UP + 1) * (uint64_t)team->size;
    /* Of the collective that used this count before, ranks may not be there yet, where nobody waits for them. */
    wait_for(team, first, *at, *all - (uint64_t)team->size);
    bool is_last = atomic_fetch_add(*at, 1) + 1 == *all;
    if (is_last) {
        team->known = team->number - 1;
        /* Not published: a rank may already be counted in the collective that uses this count next. */
        wake(team, first, *at);
    }
    return is_last;
}

/* Gives the result to all, at the first rank. */
static void release(struct team *team, const struct call *call, const void *data)
{
    struct line *line = &team->parts->down[call->number % DOWN].line;
    memcpy(down_data(team, call, 0), data, call->bytes);
    atomic_store_explicit(&line->call, call->what, memory_order_relaxed);
    publish(team, team->parts, &line->number, call->number + 1);
}

void crowded_barrier(struct team *team, const struct call *call)
{
    word *at;
    uint64_t all;
    if (arrive(team, &at, &all))
        release(team, call, "");
    else
        wait_down(team, call, 0);
    team->known = call->number;
}

void crowded_broadcast(struct team *team, const struct call *call, void *data, int root)
{
    if (team->rank == root)
        put_down(team, call, data, -1);
    else
        memcpy(data, wait_down(team, call, root), call->bytes);
}

/* Combines the values of all ranks where they are: nobody else reads them. Ranks behind another one have larger numbers. */
static const void *combine_all(struct team *team, const struct call *call, const struct reduction *reduction)
{
    const struct groups *groups = &team->groups;
    int kids[2 * FAN], first = groups_leader(groups, 0);
    for (int rank = team->size - 1; rank >= 0; rank--) {
        int count = groups_kids(groups, rank, kids);
        for (int i = 0; i < count; i++)
            reduction->combine(up_data(team, call, kids[i]), up_data(team, call, rank), reduction);
    }
    if (!groups_are_pair(groups))
        return up_data(team, call, first);
    unsigned char *second = up_data(team, call, groups_leader(groups, 1));
    reduction->combine(up_data(team, call, first), second, reduction);
    return second;
}

void crowded_reduce(struct team *team, const struct call *call, const void *in, void *out,
                    const struct reduction *reduction, int root)
{
    word *at;
    uint64_t all;
    put_up(team, call, in);
    bool is_last = arrive(team, &at, &all);
    if (root != ALL_RANKS) {
        if (team->rank != root)
            return;
        wait_for(team, team->parts, at, all);
        memcpy(out, combine_all(team, call, reduction), call->bytes);
    } else if (is_last) {
        release(team, call, combine_all(team, call, reduction));
        memcpy(out, down_data(team, call, 0), call->bytes);
    } else {
        memcpy(out, wait_down(team, call, 0), call->bytes);
    }
    team->known = call->number;
}
