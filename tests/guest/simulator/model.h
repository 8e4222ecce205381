/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The cache model: a private cache per CPU, a cache per node that holds all that its CPUs hold,
 * and a directory that knows for each line of memory who has a copy and who wrote it.
 *
 * The directory is the truth; the caches only decide what is put out. So an access that hits
 * costs one look at the directory. Each vCPU thread counts for itself; directory and caches are
 * shared through atomics, without locks. */
#ifndef SIMULATOR_MODEL_H
#define SIMULATOR_MODEL_H

#include "machine.h"

#include <stdatomic.h>

enum {
    PRIVATE_BYTES = 128 << 10,
    PRIVATE_WAYS = 8,
    NODE_BYTES = 512 << 10,
    NODE_WAYS = 16,
    BANKS = 4, /* tag banks of a card's cache; lines go round */
    /* Estimated waits, in cycles of a 2 GHz CPU. Memory and other caches are as much farther
     * as the distance table says. */
    NODE_CACHE_WAIT = 40,
    MEMORY_WAIT = 200,
    CPU_CYCLES_PER_CARD_CYCLE = 10,
};

/* What one vCPU caused; all counts are lines or messages. */
struct counts {
    uint64_t accesses;
    uint64_t reads[MAX_NODES];                      /* load misses, by home */
    uint64_t modifies[MAX_NODES];                   /* store misses, by home */
    uint64_t upgrades[MAX_NODES];                   /* shared lines made writable, by home */
    uint64_t fetches[MAX_NODES];                    /* lines that came from memory, by home */
    uint64_t transfers[MAX_NODES];                  /* lines that came from a cache, by its node */
    uint64_t writebacks[MAX_NODES][MAX_NODES];      /* from the node that had the line, to home */
    uint64_t probes[MAX_NODES][MAX_NODES];          /* from home, to the node that must answer */
    uint64_t wait[MAX_NODES];                       /* estimated cycles, by source */
    uint64_t cache[2][2][BANKS];                    /* node cache, lines of other nodes: [store][hit] */
    uint64_t rollouts[2][BANKS];                    /* such lines put out, dirty ones: [caused by store] */
    uint64_t clean_rollouts;                        /* such lines put out, clean */
    uint64_t invalidations[MAX_NODES];              /* such lines taken away by writers, by node */
};

struct cpu {
    struct counts counts;
    uint32_t self;      /* bit of this CPU in the directory */
    uint32_t writable;  /* directory bits of a line that it may write */
    uint8_t node;
} __attribute__((aligned(128)));

/* Directory word: bits 0-15 CPUs with a copy, 16-23 nodes with a copy, 24-28 who has it dirty
 * (0 nobody, 1-16 CPU, 17-24 node). */
#define OWNER_SHIFT 24
#define OWNER_MASK (31u << OWNER_SHIFT)

extern struct cpu model_cpu[MAX_CPUS];
extern _Atomic uint32_t *model_directory;

/* Takes the memory that the model needs. False, with a sentence on stderr, without it. */
bool model_create(void);

/* Empties all caches; counts stay. Call while no vCPU counts. */
void model_empty(void);

/* A line that the CPU does not have as it needs it. */
void model_miss(struct cpu *cpu, uint32_t line, bool store);

/* Adds up what all CPUs of a node did. */
void model_sum(int node, struct counts *sum);

/* One access to one line. */
static inline void model_access(struct cpu *cpu, uint32_t line, bool store)
{
    uint32_t state = atomic_load_explicit(&model_directory[line], memory_order_relaxed);
    bool hit = store ? (state & (OWNER_MASK | cpu->self)) == cpu->writable : (state & cpu->self) != 0;
    if (__builtin_expect(!hit, 0))
        model_miss(cpu, line, store);
}

#endif
