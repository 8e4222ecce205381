/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Values go from ranks to the leaders of their groups, from leaders to the first one or between two leaders, and back: each line
 * crosses the boundary of a node once. */
#include "team.h"
#include "slots.h"
#include <string.h>

/* What this rank and those behind it have; in `sum` if there are any behind it. */
static const void *gather(struct team *team, const struct call *call, const void *in, void *sum,
                          const struct reduction *reduction)
{
    if (team->kid_count == 0)
        return in;
    if (sum != in)
        memcpy(sum, in, call->bytes);
    for (int i = 0; i < team->kid_count; i++)
        reduction->combine(wait_up(team, call, team->kids[i]), sum, reduction);
    return sum;
}

static bool is_leader(const struct team *team)
{
    return team->leader == team->rank;
}

static int own_group(const struct team *team)
{
    return team->groups.of[team->rank];
}

/* The values of two groups in their order; the own one is in `part`. */
static void combine_pair(struct team *team, const struct call *call, const void *part, void *out,
                         const struct reduction *reduction)
{
    unsigned char first[LARGEST] __attribute__((aligned(64)));
    const void *other = wait_up(team, call, team->reader);
    if (own_group(team) == 1) {
        if (out != part)
            memcpy(out, part, call->bytes);
        reduction->combine(other, out, reduction);
        return;
    }
    if (out == part)
        part = memcpy(first, part, call->bytes);
    memcpy(out, other, call->bytes);
    reduction->combine(part, out, reduction);
}

/* Whether others wait for what this leader gives. */
static bool has_followers(const struct team *team)
{
    const struct groups *groups = &team->groups;
    return groups_size(groups, own_group(team)) > 1 || (team->rank == groups_leader(groups, 0) && groups->count > 2);
}

static void all_reduce(struct team *team, const struct call *call, const void *in, void *out,
                       const struct reduction *reduction)
{
    const void *part = gather(team, call, in, out, reduction);
    int first = groups_leader(&team->groups, 0);
    if (team->reader >= 0)
        put_up(team, call, part);
    if (!is_leader(team))
        memcpy(out, wait_down(team, call, team->leader), call->bytes);
    else if (groups_are_pair(&team->groups))
        combine_pair(team, call, part, out, reduction);
    else if (team->rank != first)
        memcpy(out, wait_down(team, call, first), call->bytes);
    else if (out != part)
        memcpy(out, part, call->bytes);
    if (is_leader(team) && has_followers(team))
        put_down(team, call, out, -1);
    /* All ranks have begun this collective, so that they have completed the earlier ones. */
    team->known = call->number;
}

static void reduce(struct team *team, const struct call *call, const void *in, void *out,
                   const struct reduction *reduction, int root)
{
    unsigned char own[LARGEST] __attribute__((aligned(64)));
    const struct groups *groups = &team->groups;
    int holder = groups_leader(groups, groups_are_pair(groups) ? groups->of[root] : 0);
    void *sum = team->rank == root ? out : own;
    const void *part = gather(team, call, in, sum, reduction);
    if (team->rank != holder) {
        put_up(team, call, part);
        if (team->rank == root)
            memcpy(out, wait_down(team, call, holder), call->bytes);
        return;
    }
    if (groups_are_pair(groups))
        combine_pair(team, call, part, sum, reduction);
    else if (sum != part)
        memcpy(sum, part, call->bytes);
    team->known = call->number;
    if (team->rank != root)
        put_down(team, call, sum, root);
}

static void broadcast(struct team *team, const struct call *call, void *data, int root)
{
    const struct groups *groups = &team->groups;
    bool is_near = groups->of[root] == own_group(team);
    if (team->rank == root) {
        put_down(team, call, data, -1);
        return;
    }
    memcpy(data, wait_down(team, call, is_near || is_leader(team) ? root : team->leader), call->bytes);
    if (!is_near && is_leader(team) && groups_size(groups, own_group(team)) > 1)
        put_down(team, call, data, -1);
}

static void nothing(const void *in, void *inout, const struct reduction *reduction)
{
    (void)in;
    (void)inout;
    (void)reduction;
}

void team_barrier(struct team *team)
{
    static const struct reduction none = {.combine = nothing};
    struct call call = call_begin(team, SERVED_Barrier, 0, ALL_RANKS);
    char empty = 0;
    if (team->is_crowded)
        crowded_barrier(team, &call);
    else
        all_reduce(team, &call, &empty, &empty, &none);
    call_end(team, &call);
}

void team_broadcast(struct team *team, void *data, size_t bytes, int root)
{
    struct call call = call_begin(team, SERVED_Bcast, bytes, root);
    if (team->is_crowded)
        crowded_broadcast(team, &call, data, root);
    else
        broadcast(team, &call, data, root);
    call_end(team, &call);
}

void team_reduce(struct team *team, const void *in, void *out, size_t bytes, const struct reduction *reduction, int root)
{
    struct call call = call_begin(team, root == ALL_RANKS ? SERVED_Allreduce : SERVED_Reduce, bytes, root);
    if (team->is_crowded)
        crowded_reduce(team, &call, in, out, reduction, root);
    else if (root == ALL_RANKS)
        all_reduce(team, &call, in, out, reduction);
    else
        reduce(team, &call, in, out, reduction, root);
    call_end(team, &call);
}
