/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The memory of a team, and where its parts lie. */
#include "nodes.h"
#include "os.h"
#include "shares.h"
#include <string.h>

enum {
    PAGE = 4096,
    HINTS = LINE / sizeof(hint),   /* in a line */
    MAX_TAGS = 0x8000,             /* between two times that all words are reset: tags have 16 bits */
    FIRST = RING,                  /* the first loop's tag is not that of new memory */
};

static uint64_t rounded(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

/* The next part of a piece of memory. */
static void *cut(char **at, uint64_t bytes)
{
    void *part = *at;
    *at += rounded(bytes, LINE);
    return part;
}

struct shares *shares_new(uint32_t capacity)
{
    if (capacity == 0 || capacity > MAX_MEMBERS)
        return NULL;
    uint64_t groups = sizeof(struct group) * (capacity < MAX_NODES ? capacity : MAX_NODES);
    uint64_t pointers = sizeof(void *) * capacity, numbers = sizeof(uint32_t) * capacity;
    uint64_t bytes = rounded(sizeof(struct shares), LINE) + rounded(groups, LINE) + 2 * rounded(pointers, LINE) +
                     4 * rounded(numbers, LINE);
    char *at = os_allocate(bytes, 0);
    struct shares *shares = (struct shares *)at;
    if (!shares)
        return NULL;
    cut(&at, sizeof *shares);
    shares->group = cut(&at, groups);
    shares->lines = cut(&at, pointers);
    shares->hint_of = cut(&at, pointers);
    shares->hint_step = cut(&at, numbers);
    shares->order = cut(&at, numbers);
    shares->nodes = cut(&at, numbers);
    shares->settled = cut(&at, numbers);
    shares->bytes = bytes;
    shares->capacity = capacity;
    shares->sequence = FIRST;
    return shares;
}

void shares_free(struct shares *shares)
{
    if (shares->area)
        os_unmap(shares->area, shares->area_bytes);
    os_unmap(shares, shares->bytes);
}

static int node_of(const struct shares *shares, uint32_t member)
{
    int node = atomic_load_explicit(&shares->nodes[member], memory_order_relaxed);
    return node < 0 || node >= MAX_NODES ? 0 : node;
}

static uint64_t hint_bytes(uint32_t members)
{
    return rounded(members, HINTS) * sizeof(hint);
}

static uint64_t group_bytes(uint32_t members)
{
    return rounded(RING * hint_bytes(members) + members * sizeof(struct member_line), PAGE);
}

/* The members of each node are a group. Returns the bytes of all groups. */
static uint64_t group_members(struct shares *shares, uint32_t count)
{
    uint32_t members[MAX_NODES] = {0}, at = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        members[node_of(shares, i)]++;
    shares->groups = 0;
    for (int node = 0; node < MAX_NODES; node++) {
        if (members[node] == 0)
            continue;
        shares->group[shares->groups++] = (struct group){.node = node, .first = at, .count = members[node]};
        for (uint32_t i = 0; i < count; i++)
            if (node_of(shares, i) == node)
                shares->order[at++] = i;
        bytes += group_bytes(members[node]);
    }
    return bytes;
}

static void lay_out(struct shares *shares)
{
    char *at = shares->area;
    for (uint32_t g = 0; g < shares->groups; g++) {
        struct group *group = &shares->group[g];
        char *from = at;
        if (nodes_count() > 1)
            os_prefer_node(from, group_bytes(group->count), node_of_kernel(group->node));
        for (uint32_t loop = 0; loop < RING; loop++)
            group->hints[loop] = cut(&at, hint_bytes(group->count));
        for (uint32_t i = 0; i < group->count; i++) {
            uint32_t member = shares->order[group->first + i];
            shares->lines[member] = cut(&at, sizeof(struct member_line));
            shares->hint_of[member] = group->hints[0] + i;
            shares->hint_step[member] = (uint32_t)(group->hints[1] - group->hints[0]);
            shares->settled[member] = (int16_t)group->node;
        }
        at = from + group_bytes(group->count);
    }
}

static void begin_again(struct shares *shares)
{
    shares->sequence = FIRST;
    for (uint32_t i = 0; i < RING; i++)
        atomic_store_explicit(&shares->last[i], 0, memory_order_relaxed);
}

bool shares_settle(struct shares *shares, uint32_t count)
{
    if (count > shares->capacity)
        return false;
    uint32_t before = shares->count;
    uint64_t bytes = group_members(shares, count);
    void *area = os_allocate(bytes, 0);
    if (!area) {
        /* Groups that fit the lines that are there: one of all members. */
        if (before < count || !shares->area || group_bytes(count) > shares->area_bytes)
            return false;
        area = memset(shares->area, 0, shares->area_bytes);
        bytes = shares->area_bytes;
        shares->groups = 1;
        shares->group[0].first = 0;
        shares->group[0].count = count;
    } else if (shares->area) {
        os_unmap(shares->area, shares->area_bytes);
    }
    shares->area = area;
    shares->area_bytes = bytes;
    shares->count = count;
    lay_out(shares);
    begin_again(shares);
    atomic_store_explicit(&shares->has_moved, false, memory_order_relaxed);
    return true;
}

void shares_advance(struct shares *shares, uint64_t next)
{
    /* Others may be as many loops ahead as fit in the ring. */
    shares->sequence = next + 2 * RING;
    if (shares->sequence / RING < MAX_TAGS || !shares->area)
        return;
    memset(shares->area, 0, shares->area_bytes);
    begin_again(shares);
}
