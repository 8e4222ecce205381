/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The memory file into which the ranks of MPI programs write what their calls cost. `numa` makes it, and reads it while they run
 * and after they have ended, however they ended. It has holes: a rank takes memory for its own part when it begins.
 * crates/sys/src/mpi_calls/layout.rs has the same layout: another one is another version. */
#ifndef MPI_LAYOUT_H
#define MPI_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define MPI_FILE_MAGIC UINT64_C(0x534c4c414349504d) /* "MPICALLS" */

enum {
    MPI_FILE_VERSION = 2,
    RANKS = 1024,           /* processes; later ones are counted, and write nothing */
    COMMUNICATORS = 128,    /* of a process; the last one is for all that have no room, and for calls without any */
    CELLS = 1024,           /* of a process; the last one is for all that have no room */
    MASK_WORDS = 128,
    TEXT_BYTES = 80,
    OBSTACLE_BYTES = 160,
    SEGMENTS = 1024,        /* communicators whose ranks tell each other when they arrive */
    RING = 64,              /* the last arrivals of a rank */
    ARENA_WORDS = 1 << 22,  /* of all arrivals */
};

typedef _Atomic uint64_t word;

struct mpi_header {
    word magic, version, token;
    word ns_per_tick;       /* of the clock of this processor, in units of 2^-32 */
    word ranks;             /* that began, also those that have no part of the file */
    word arena_used;        /* words */
    word unused[506];
};

/* Why other ranks of a communicator are not waited for, as far as is known. */
enum { JUDGED = 0, INTER = 1, NO_ROOM = 2, OTHER_MACHINES = 3 };

struct mpi_communicator {
    word key;               /* the same in all its ranks; 0: free */
    word size, rank;
    word reason;
    word collectives;       /* calls */
    word unused;
    char name[TEXT_BYTES];
};

/* A communicator, an operation and a class of sizes. */
struct mpi_cell {
    word key;               /* 0: free; else 1 + class + 64 * (operation + 64 * communicator) */
    word calls, ticks, bytes;
    word least;             /* ticks of the shortest call */
    word judged_calls, judged_ticks, waited_ticks; /* of calls of which is known how long they waited for other ranks */
};

/* Of a rank of MPI_COMM_WORLD, that at its place; the last one is also that of all later ones. */
struct mpi_pair {
    word messages, bytes;   /* sent to it */
    word waited_ticks;      /* it was waited for in a collective, since it came last */
    word late;              /* calls in which this was so */
};

/* Whether a rank may read another one's memory: a message is then copied once. */
enum { COPY_UNKNOWN = 0, COPY_WORKS = 1, COPY_FAILS = 2, COPY_UNTRIED = 3 };

struct mpi_process {
    word state;             /* 0: free or being written; 1: it may be read */
    word pid;
    word job;               /* the same in all ranks of one MPI_COMM_WORLD */
    word rank, size;        /* in MPI_COMM_WORLD */
    word abi;               /* 1: Open MPI, 2: MPICH, 3: the standard one */
    word thread_level;      /* 0 to 3: single, funneled, serialized, multiple */
    word begin_ticks;       /* MPI_Init returned */
    word end_ticks;         /* MPI_Finalize was called; 0: not yet */
    word cpu_ns;            /* CPU time from one to the other */
    word copy, copy_error;
    word beacon;            /* the address of a number that is the file's token */
    word full_cells;        /* calls without room for their cell */
    word collectives;       /* whose they are: 0: the MPI's; 1: this library's; 2: this library's where that pays */
    word teams;             /* communicators whose collectives were this library's */
    word served[4];         /* these: barriers, broadcasts, reduces, allreduces */
    char obstacle[OBSTACLE_BYTES]; /* why they were the MPI's, though the user asked for this library's */
    word unused[332];
    char library[TEXT_BYTES];
    word padding[2];
    word mask[MASK_WORDS];  /* CPUs that the process may use after MPI_Init */
    struct mpi_communicator communicators[COMMUNICATORS];
    struct mpi_cell cells[CELLS];
    struct mpi_pair pairs[RANKS];
};

struct mpi_segment {
    word key;               /* of the communicator; 0: free */
    word place;             /* of its first word in the arena, plus one; 0: not yet; UINT64_MAX: no room */
};

struct mpi_file {
    struct mpi_header header;
    struct mpi_segment segments[SEGMENTS];
    struct mpi_process processes[RANKS];
    word arena[ARENA_WORDS];
};

static_assert(sizeof(struct mpi_header) == 4096 && sizeof(struct mpi_communicator) == 128 &&
                  sizeof(struct mpi_cell) == 64 && sizeof(struct mpi_process) == 29 * 4096 &&
                  sizeof(struct mpi_segment) * SEGMENTS % 4096 == 0,
              "another layout is another version");

#endif
