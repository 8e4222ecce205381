/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The memory that the ranks of a job on one machine share for collectives: who takes part, and for each communicator a part of
 * each rank. It is a memory file without a name: nothing of it is left when the last rank has ended, however it ended. */
#ifndef MPI_ATTENDANCE_H
#define MPI_ATTENDANCE_H

#include "layout.h"
#include <assert.h>

#define SHARED_MAGIC UINT64_C(0x534b4e4152494e55) /* "UNIRANKS" */

enum {
    SHARED_VERSION = 1,
    LINE = 64,
    LARGEST = 4096,         /* bytes of a collective; larger ones are the MPI's */
    INLINE = 48,            /* bytes that are in the line that says that they are there */
    UP = 14, DOWN = 16,     /* lines of a rank for the last collectives, towards the result and away from it */
    UP_LARGE = 4, DOWN_LARGE = 4,
    ROWS = 64,              /* of the machine's table */
    CPU_WORDS = 32,
};

/* The collectives that this library has. */
#define SERVED(DO) DO(Barrier) DO(Bcast) DO(Reduce) DO(Allreduce)
#define AS_SERVED(name) SERVED_##name,
enum served { SERVED(AS_SERVED) SERVED_COUNT };

/* Whether a rank takes part: what is decided once stays so, for all that ask. */
enum { UNDECIDED = 0, PRESENT = 1, ABSENT = 2 };

struct attendee {
    word state;
    word pid;
    word node;              /* on which all of its CPUs are, plus one; 0: they are on several */
    word unused[5];
    word cpus[CPU_WORDS];
};

/* An operation pays on communicators of these numbers of ranks, up to this number of bytes. */
struct row {
    uint32_t operation, from, to, most;
};

struct shared {
    word magic, version, job;
    word begun;             /* ranks that came, before their MPI_Init */
    word attended;          /* of these, those whose state is decided */
    word world;             /* ranks of MPI_COMM_WORLD, also elsewhere */
    word rows;
    word mode;
    struct row table[ROWS];
    word unused[376];
    struct attendee attendees[RANKS];
};

struct line {
    _Alignas(LINE) word number;     /* of the collective, plus one: then the rest is there */
    word call;                      /* what it is, so that ranks that disagree are found */
    unsigned char data[INLINE];
};

/* Processors fetch lines in pairs. */
struct slot {
    struct line line;
    unsigned char neighbour[LINE];
};

/* Of a rank in a communicator. */
struct part {
    word done;              /* collectives, as they are numbered: what they read may be overwritten */
    word sleepers;          /* ranks that sleep until a word of this part changes */
    word unused[14];
    /* Of the first rank only. */
    word left;              /* ranks that have freed the communicator */
    word arrived[UP];       /* where ranks share CPUs */
    word unused2;
    struct slot up[UP], down[DOWN];
    unsigned char up_large[UP_LARGE][LARGEST], down_large[DOWN_LARGE][LARGEST];
};

static_assert(sizeof(struct shared) == 4096 + sizeof(struct attendee) * RANKS && sizeof(struct shared) % 4096 == 0,
              "parts begin at pages");
static_assert(sizeof(struct part) == 4096 + (UP_LARGE + DOWN_LARGE) * LARGEST && sizeof(struct part) <= 65536,
              "a rank's memory is limited");

#endif
