/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "groups.h"
#include "os.h"

static size_t bytes_of(int ranks)
{
    return sizeof(int) * (4 * (size_t)ranks + 1);
}

/* Numbers groups in the order of their first ranks. */
static int number_groups(struct groups *groups, const int *nodes)
{
    bool is_known = true;
    int count = 0;
    for (int rank = 0; rank < groups->ranks; rank++)
        is_known &= nodes[rank] >= 0;
    for (int rank = 0; rank < groups->ranks; rank++) {
        int same = 0;
        while (is_known && same < rank && nodes[same] != nodes[rank])
            same++;
        if (groups->ranks == 2)
            same = rank;
        groups->of[rank] = same == rank ? count++ : groups->of[same];
    }
    return count;
}

bool groups_begin(struct groups *groups, const int *nodes, int ranks)
{
    int *memory = ranks <= FEW ? groups->few : os_allocate(bytes_of(ranks), 0);
    if (!memory)
        return false;
    groups->ranks = ranks;
    groups->of = memory;
    groups->index = memory + ranks;
    groups->members = memory + 2 * ranks;
    groups->begin = memory + 3 * ranks;
    groups->count = number_groups(groups, nodes);
    int at = 0;
    for (int group = 0; group < groups->count; group++) {
        groups->begin[group] = at;
        for (int rank = 0; rank < ranks; rank++)
            if (groups->of[rank] == group) {
                groups->index[rank] = at - groups->begin[group];
                groups->members[at++] = rank;
            }
    }
    groups->begin[groups->count] = at;
    return true;
}

void groups_end(struct groups *groups)
{
    if (groups->of && groups->of != groups->few)
        os_unmap(groups->of, bytes_of(groups->ranks));
    groups->of = NULL;
}

int groups_kids(const struct groups *groups, int rank, int kids[2 * FAN])
{
    int group = groups->of[rank], index = groups->index[rank], count = 0;
    for (int i = FAN * index + 1; i <= FAN * index + FAN && i < groups_size(groups, group); i++)
        kids[count++] = groups->members[groups->begin[group] + i];
    if (index > 0 || groups_are_pair(groups))
        return count;
    for (int i = FAN * group + 1; i <= FAN * group + FAN && i < groups->count; i++)
        kids[count++] = groups_leader(groups, i);
    return count;
}

int groups_reader(const struct groups *groups, int rank)
{
    int group = groups->of[rank], index = groups->index[rank];
    if (index > 0)
        return groups->members[groups->begin[group] + (index - 1) / FAN];
    if (groups_are_pair(groups))
        return groups_leader(groups, 1 - group);
    return group > 0 ? groups_leader(groups, (group - 1) / FAN) : -1;
}
