/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Collectives of the ranks of a communicator, over bytes of the memory that they share. */
#ifndef MPI_TEAM_H
#define MPI_TEAM_H

#include "groups.h"
#include "attendance.h"
#include <stddef.h>

/* What was last written to memory that is used again. */
struct last {
    uint64_t number;        /* of the collective, plus one; 0: of none */
    int extra;              /* a rank that reads it and is none of the usual ones; -1: none */
};

struct team {
    int rank, size;
    bool is_crowded;        /* ranks share CPUs: they sleep, and the last one that comes works for all */
    struct part *parts;
    struct groups groups;
    int kids[2 * FAN], kid_count, reader, leader;
    uint64_t number;        /* of the next collective */
    uint64_t known;         /* all ranks have completed those before this one */
    uint64_t read_up, read_down; /* the one that reads what this rank gives up has completed those before; those that usually read
                             * what it gives down */
    uint64_t large;         /* collectives that did not fit into a line */
    uint64_t recent[DOWN_LARGE]; /* their numbers, plus one */
    int roots[UP], recent_roots[UP_LARGE]; /* of reduces that used a place last, plus one; 0: it was no reduce */
    uint64_t counted;       /* collectives in which ranks are counted */
    struct last up_large[UP_LARGE], down[DOWN], down_large[DOWN_LARGE];
};

/* Combines what another rank gives with what is in `inout`. */
struct reduction {
    void (*combine)(const void *in, void *inout, const struct reduction *reduction);
    int count;
    uintptr_t type, operation;
};

enum { ALL_RANKS = -1 };

/* What a team needs of its MPI. */
struct team_calls {
    void (*progress)(void);                     /* of messages that are under way */
    void (*abort)(const char *text);            /* ranks disagree on what they call */
};
extern struct team_calls team_calls;

/* After rank, size, is_crowded, parts and groups are set; `base` is the number of the first collective. */
void team_begin(struct team *team, uint64_t base);

void team_barrier(struct team *team);
void team_broadcast(struct team *team, void *data, size_t bytes, int root);
/* To the root or to ALL_RANKS; `out` means nothing in other ranks, and may be `in`. */
void team_reduce(struct team *team, const void *in, void *out, size_t bytes, const struct reduction *reduction, int root);

#endif
