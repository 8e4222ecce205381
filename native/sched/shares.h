/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The shares of a loop: each member of a team has the part of the loop that a static schedule would give it, takes chunks from
 * its front, and when it is empty steals from the back of another's. Nobody waits for anybody here but for the slowest of a
 * chain of loops. Nothing of OpenMP is known: a loop is a number of units.
 *
 * What is left of a member's share is one word, so that a take and a steal are one compare-and-swap each, and a word says all:
 * a value that comes back means the same as before. Words of earlier loops need no reset: a word with another tag is a share
 * that nobody has touched. */
#ifndef SCHED_SHARES_H
#define SCHED_SHARES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    RING = 8,                      /* loops of one team that may go on at the same time */
    LINE = 128,                    /* two lines of a cache, since processors fetch pairs */
    MAX_UNITS = (1 << 24) - 1,     /* of a loop */
    MAX_MEMBERS = 4096,
};

/* What others read and change of a member; on its node. */
struct member_line {
    _Alignas(LINE) _Atomic uint64_t words[RING]; /* tag 16 | begin 24 | end 24 */
    _Atomic uint64_t finished;                   /* the last loop that the member has left */
};

/* How much members have left, roughly: one line says it of all members of a node, so that a thief need not read all words.
 * tag 23 | about to end 1 | size of the rest 8; another tag is an untouched share. A hint that is wrong costs balance, never an iteration:
 * it says "empty" only after a word was seen empty. */
typedef _Atomic uint32_t hint;

/* Members that are on one node. */
struct group {
    int node;
    uint32_t first, count;         /* in the order of members */
    hint *hints[RING];
};

struct shares {
    uint32_t capacity, count;      /* members for which there is room; of the present layout */
    uint64_t sequence;             /* the first loop of the present region */
    uint32_t groups;
    struct group *group;
    struct member_line **lines;    /* by member */
    hint **hint_of;                /* by member: its hint of the first loop of the ring */
    uint32_t *hint_step;           /* by member: how far behind is that of the next loop */
    uint32_t *order;               /* members, those of a node together */
    _Atomic int16_t *nodes;        /* by member: where it is */
    int16_t *settled;              /* by member: where it was when lines were laid out */
    void *area;                    /* of lines and hints */
    uint64_t area_bytes, bytes;
    _Alignas(LINE) _Atomic uint64_t last[RING]; /* the loop whose last unit has been taken */
    _Atomic bool has_moved;        /* a member is on another node than where its line is */
};

/* Units of a loop. */
struct range {
    uint32_t begin, end;
    uint32_t home;                 /* the member to whom a static schedule gives them */
    uint32_t distance;             /* of the node from which they have just been stolen; 0: they were the member's */
};

/* A member's own view, which no other thread reads. */
struct member {
    struct shares *shares;
    uint32_t number;
    int16_t node;
    uint64_t next;                 /* its next loop */
    uint64_t known;                /* all members have left the loops up to this one */
    /* The loop that it is in: */
    uint64_t loop, tag;
    _Atomic uint64_t *word;
    hint *hint;
    uint32_t units, quotient, remainder; /* of a static schedule */
    uint32_t least;                /* units of a chunk, unless fewer are left */
    uint32_t home;                 /* of the range in its word */
    uint32_t published;            /* what its hint says, without the tag */
    bool is_over;
};

/* Room for teams of up to `capacity` members; NULL without memory. */
struct shares *shares_new(uint32_t capacity);
void shares_free(struct shares *shares);

/* Lays lines out on the nodes on which members are. Called by one thread while no member is in a loop, and before the first
 * one. Without memory the layout stays, if there is one for as many; false if there is none. */
bool shares_settle(struct shares *shares, uint32_t count);

/* Between regions, when no member is in a loop: `next` is the loop that any one of the members would begin next. */
void shares_advance(struct shares *shares, uint64_t next);

/* A member of the present region. */
void member_join(struct member *member, struct shares *shares, uint32_t number, int node);

/* Says where a member is. */
void member_place(struct member *member, int node);

/* Enters the next loop, of N units for all members; chunks have at least `least` units. A loop that is too far
 * ahead of the slowest member has nothing for this one: it is left to the others. */
void member_begin(struct member *member, uint32_t units, uint32_t least);

/* The next chunk; false if there is none for this member. The last unit of a loop is the last one of the member that has it:
 * code for lastprivate takes a member whose last chunk ends where the loop ends for the one that has the value. */
bool member_take(struct member *member, struct range *range);

/* Leaves the loop. */
void member_finish(struct member *member);

/* The units that a static schedule gives a member. */
struct range share_of(const struct member *member, uint32_t number);

/* All members have left all loops that this one has left: they have met at a barrier. */
static inline void member_met(struct member *member)
{
    member->known = member->next - 1;
}

#endif
