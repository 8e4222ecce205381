/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/next.h"
#include "nodes.h"
#include "numasched.h"
#include "os.h"
#include "spans.h"
#include <errno.h>

struct seat {
    _Alignas(LINE) struct member member;
    struct span span;
    bool is_in_loop;
};

struct numasched_team {
    struct shares *shares;
    uint32_t count;
    uint64_t bytes;
    struct seat seats[];
};

static void join_all(numasched_team *team)
{
    for (uint32_t i = 0; i < team->count; i++)
        member_join(&team->seats[i].member, team->shares, i, team->seats[i].member.node);
}

PUBLIC numasched_team *numasched_create(unsigned members)
{
    if (members == 0 || members > MAX_MEMBERS)
        return errno = EINVAL, NULL;
    uint64_t bytes = sizeof(numasched_team) + members * sizeof(struct seat);
    numasched_team *team = os_allocate(bytes, 0);
    struct shares *shares = team ? shares_new(members) : NULL;
    if (!shares || !shares_settle(shares, members)) {
        if (shares)
            shares_free(shares);
        if (team)
            os_unmap(team, bytes);
        return errno = ENOMEM, NULL;
    }
    team->shares = shares;
    team->count = members;
    team->bytes = bytes;
    join_all(team);
    return team;
}

PUBLIC void numasched_destroy(numasched_team *team)
{
    if (!team)
        return;
    shares_free(team->shares);
    os_unmap(team, team->bytes);
}

PUBLIC int numasched_join(numasched_team *team, unsigned member)
{
    if (member >= team->count)
        return EINVAL;
    member_place(&team->seats[member].member, node_here(member, team->count));
    return 0;
}

PUBLIC int numasched_settle(numasched_team *team)
{
    if (!shares_settle(team->shares, team->count))
        return ENOMEM;
    join_all(team);
    return 0;
}

PUBLIC int numasched_begin(numasched_team *team, unsigned member, long long begin, long long end, long long step,
                           long long chunk)
{
    if (member >= team->count || step == 0 || chunk <= 0)
        return EINVAL;
    struct seat *seat = &team->seats[member];
    if (nodes_count() > 1)
        member_place(&seat->member, node_here(member, team->count));
    seat->span = span_of_long(begin, end, step, chunk);
    seat->is_in_loop = true;
    member_begin(&seat->member, seat->span.units, 1);
    return 0;
}

PUBLIC int numasched_next(numasched_team *team, unsigned member, long long *from, long long *to)
{
    struct seat *seat = member < team->count ? &team->seats[member] : NULL;
    struct range range;
    if (!seat || !seat->is_in_loop || !member_take(&seat->member, &range))
        return 0;
    *from = (long long)value_at(&seat->span, range.begin);
    *to = (long long)value_at(&seat->span, range.end);
    return 1;
}

PUBLIC void numasched_end(numasched_team *team, unsigned member)
{
    struct seat *seat = member < team->count ? &team->seats[member] : NULL;
    if (!seat || !seat->is_in_loop)
        return;
    seat->is_in_loop = false;
    member_finish(&seat->member);
}

PUBLIC const char *numasched_version(void)
{
    return NUMASCHED_VERSION;
}
