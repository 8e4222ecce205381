/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The cure of this process: what the table says of objects, checked and copied, since others can write to the table; and what was done,
 * which is counted in the table. */
#ifndef CURE_H
#define CURE_H

#include "lock.h"
#include "table.h"

#define RARELY(condition) __builtin_expect(!!(condition), 0)

/* Memory whose policy is that of all of it and no node's. */
enum { ANY_NODE = NO_NODE };

struct object {
    struct apply_object *told;
    uint8_t kind, policy, pages, over;
    uint32_t number;              /* from 1 */
    uint32_t module;              /* of a variable */
    uint64_t address, bytes;
    size_t smallest, largest;     /* blocks of these sizes get the policy, */
    size_t least;                 /* and all from here on; SIZE_MAX if there are none */
    uint64_t count;
    _Atomic uint64_t seen;        /* blocks, where parts are over these */
    uint32_t chain_count;
    uint32_t chain_module[MAX_CHAIN];
    uint64_t chain[MAX_CHAIN];
    _Atomic uintptr_t code[MAX_CHAIN]; /* the chain in this process; code[0] is 0 while one of its modules is not loaded */
    uint16_t next;                /* the next object with the same direct caller, as an index + 1 */
    uint16_t node[FRACTIONS];
    unsigned parts;               /* runs of fractions of one node */
    atomic_bool was_said;
    atomic_uint sampled_frees;
    atomic_uint failures;         /* since its policy was set last */
};

struct module {
    uint8_t build_id[BUILD_ID_BYTES];
    size_t build_id_bytes;
    struct apply_module *told;
    bool is_loaded;
    uintptr_t bias;               /* what the loader adds to the addresses of its file */
    uintptr_t from, to;           /* the memory in which it can have variables */
};

struct cure {
    struct apply_table *table;    /* NULL: there is none, or the library steps aside */
    size_t page_bytes, node_count;
    size_t object_count, module_count; /* more than in the table where a module is loaded more than once */
    struct nodes used;
    uint16_t used_node[MAX_NODES];
    uint32_t cpu[MAX_NODES];
    size_t used_count;
    bool verbose, is_refused;     /* policies are refused */
    atomic_bool is_filtered;
    struct object object[MAX_OBJECTS];
    struct module module[MAX_MODULES];
};

extern struct cure cure __attribute__((visibility("hidden")));

/* Reads the table that the environment names. False if there is none for this process. */
bool cure_begin(char **environment);

/* Whether the program has set a filter of system calls: it may end the process for any that the program does not make itself. From then
 * on nothing is given and nothing is asked of the kernel. */
static inline bool is_filtered(void)
{
    return atomic_load_explicit(&cure.is_filtered, memory_order_relaxed);
}

/* Whether a block of this size gets the policy. */
static inline bool object_takes(const struct object *object, size_t size)
{
    return (size >= object->smallest && size <= object->largest) || (size >= object->least && size <= SIZE_MAX / 2);
}

/* Whether the policy has the kernel allocate memory on chosen nodes. */
static inline bool object_has_nodes(const struct object *object)
{
    return object->policy != AS_PADDED && object->policy != AS_UNCHANGED;
}

/* The node of the next block, where parts are over blocks; NO_NODE if it has none. */
static inline uint16_t object_next_node(struct object *object)
{
    uint64_t number = atomic_fetch_add_explicit(&object->seen, 1, memory_order_relaxed) % object->count;
    return object->node[(unsigned __int128)number * FRACTIONS / object->count];
}

static inline void count_up(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

#endif
