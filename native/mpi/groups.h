/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The ranks of a communicator by the nodes that they run on: which rank waits for which. All ranks compute the same, so that
 * the order in which values are combined is fixed by ranks and nodes. */
#ifndef MPI_GROUPS_H
#define MPI_GROUPS_H

#include <stdbool.h>

enum { FAN = 4, FEW = 16 };

struct groups {
    int ranks, count;
    int *of;                /* the group of a rank */
    int *index;             /* of a rank in its group */
    int *members;           /* ranks by groups, in their order */
    int *begin;             /* of each group in members, and the end of the last one */
    int few[4 * FEW + 1];   /* the memory of all of these, of few ranks */
};

/* Nodes of ranks, -1 where one is unknown: then there is one group. Two ranks are always two groups. False without memory. */
bool groups_begin(struct groups *groups, const int *nodes, int ranks);
void groups_end(struct groups *groups);

static inline int groups_leader(const struct groups *groups, int group)
{
    return groups->members[groups->begin[group]];
}

static inline int groups_size(const struct groups *groups, int group)
{
    return groups->begin[group + 1] - groups->begin[group];
}

/* Two leaders tell each other; of more, the first one gets all. */
static inline bool groups_are_pair(const struct groups *groups)
{
    return groups->count == 2;
}

/* The ranks whose values a rank combines with its own, in this order; at most 2 * FAN. */
int groups_kids(const struct groups *groups, int rank, int kids[2 * FAN]);
/* The only one that reads what a rank gives towards the result; -1 of the first rank of one group or of more than two. */
int groups_reader(const struct groups *groups, int rank);

#endif
