/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The memory file into which all processes of a program count their allocations. `numa` makes it, and reads it while they
 * run and after they have ended, however they ended. All counts are words that only grow, but those that say otherwise.
 * crates/sys/src/allocation_counts/layout.rs has the same layout: another one is another version. */
#ifndef COUNT_LAYOUT_H
#define COUNT_LAYOUT_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define COUNT_MAGIC UINT64_C(0x544e554f43414d55) /* "UMACOUNT" */

enum {
    COUNT_VERSION = 1,
    PROCESSES = 1024,     /* those after the last one share its entry */
    SHARDS = 64,          /* threads that begin one after the other count in different ones */
    SIZES = 256,          /* steps of sizes: four for each power of two */
    LIFES = 64,           /* powers of two */
    SITES = 4096,
    FRAMES = 23,
    MODULES = 1024,
    PATH_BYTES = 216,
};

typedef _Atomic uint64_t word;

struct count_header {
    word magic, version, token;
    word every;           /* bytes between two sampled blocks, on average; 1 samples all blocks */
    word ns_per_tick;     /* of the clock of this processor, in units of 2^-32 */
    word has_chains;      /* call chains are wanted */
    word processes;       /* that counted, also those that have no entry of their own */
    word threads;
    word modules;
    word lost_lives;      /* sampled blocks for which there was no room */
    word lost_sites;      /* sampled blocks whose call chain has no entry */
    word pair_ticks;      /* between two readings of the clock with nothing in between; the least */
    word no_unwinder;     /* processes where only the caller of malloc is known */
    word no_usable;       /* processes whose live memory is not known */
    word own_faults;      /* page faults of this library's own memory */
    word outside_ticks;   /* of a counted call before its first and after its last reading of the clock */
    word unused[48];
};

struct count_process {
    word pid;             /* 0: no process yet */
    word parent;          /* the place of the process that forked it, plus one; 0 for a program that was executed */
    word image;           /* the place of the process that executed this program: addresses of code are the same */
    word live;            /* bytes of its live blocks; also falls */
    word peak;            /* the maximum of it */
    word allocated;       /* bytes of all blocks, of which `live` is what is left */
    word own_bytes;       /* memory that this library has mapped privately */
    word unused[9];
};

struct count_size {
    word blocks, bytes;
};

struct count_shard {
    word usable, frees;
    word reallocs, zeroed, aligned; /* of the allocations */
    word failed;
    word taking_ticks, giving_ticks; /* in the allocator, for allocations and for frees */
    word counting_ticks;  /* in this library beside it */
    word unused[7];
    struct count_size sizes[SIZES]; /* by the requested size; their sums are those of all allocations */
};

/* Sums over sampled blocks, each by its weight, in 1/1024 of a block. */
struct count_life {
    word blocks, bytes;
};

struct count_site {
    word key;             /* 0: free */
    word samples;
    word image;
    word frames_known;    /* 0 while they are written */
    word blocks, bytes, freed_blocks, freed_bytes;
    word life_us;         /* of the freed ones, by weight */
    word frames[FRAMES];
};

struct count_module {
    word image;           /* the place of the process plus one; 0 while it is written */
    word from, to, offset;
    word inode;
    char path[PATH_BYTES]; /* zero-terminated; the beginning of a longer one */
};

struct count_file {
    struct count_header header;
    struct count_process processes[PROCESSES];
    struct count_shard shards[SHARDS];
    struct count_life by_time[LIFES];   /* log2 of nanoseconds from malloc to free */
    struct count_life by_bytes[LIFES];  /* log2 of the bytes that the process allocated in between */
    struct count_site sites[SITES];
    struct count_module modules[MODULES];
};

static_assert(sizeof(struct count_header) == 512 && sizeof(struct count_process) == 128 &&
                  sizeof(struct count_shard) == 8 * (16 + 2 * SIZES) && sizeof(struct count_site) == 256 &&
                  sizeof(struct count_module) == 256,
              "another layout is another version");

#endif
