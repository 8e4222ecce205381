/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of a cure: a memory file of `numa run`, which says what each object gets, and where this library counts what it did.
 * All is in words of 64 bits. crates/sys/src/apply_table/layout.rs has the same layout. */
#ifndef TABLE_H
#define TABLE_H

#include <stdatomic.h>
#include <stdint.h>

#define APPLY_MAGIC UINT64_C(0x4c5050414d554e41) /* "ANUMAPPL" */

enum {
    APPLY_VERSION = 1,
    MAX_NODES = 1024,
    MAX_MODULES = 64,
    MAX_OBJECTS = 256,
    MAX_CHAIN = 8,
    FRACTIONS = 64,
    COUNTED_NODES = 64,
    BUILD_ID_BYTES = 40,
    NO_NODE = 0xffff,
};

enum object_kind { OF_VARIABLE = 1, OF_BLOCKS = 2 };
enum object_policy { AS_PARTS = 1, AS_INTERLEAVED, AS_WEIGHTED, AS_NEAR, AS_PADDED, AS_UNCHANGED };
enum object_pages { PAGES_AS_THEY_ARE, PAGES_HUGE, PAGES_SMALL };
enum parts_over { OVER_BLOCK, OVER_BLOCKS };

/* What the library says of a module. */
enum module_state { NOT_LOADED, LOADED };

struct apply_header {
    uint64_t magic, version, token;
    uint64_t object_count, module_count, node_count;
    uint64_t verbose;                    /* 1: a line on standard error for each object when it gets its policy first */
    _Atomic uint64_t processes;          /* that have attached */
    _Atomic uint64_t stepped_aside;      /* processes in which the library does nothing: sanitizers, filters that were there */
    _Atomic uint64_t policies_refused;   /* 1: mbind is refused here, and memory is touched from its nodes instead */
    _Atomic uint64_t mappings_exhausted; /* blocks that got no policy, since the process has nearly as many mappings as allowed */
    _Atomic uint64_t overridden;         /* calls of the program's own policies that were left out */
    _Atomic uint64_t filters;            /* of system calls, that the first process had; one more */
    _Atomic uint64_t filtered;           /* processes that have set a filter of their own: from then on they get nothing */
    _Atomic uint64_t deep_bindings;      /* calls of dlopen in which RTLD_DEEPBIND was left out */
    uint64_t reserved[49];
};

struct apply_node {
    uint32_t cpu;      /* a CPU of the node that the program may use */
    uint32_t is_used;  /* 1: the node is one of the program's, and has this CPU */
};

struct apply_module {
    uint64_t build_id_bytes;
    uint8_t build_id[BUILD_ID_BYTES];
    _Atomic uint64_t state;
    uint64_t reserved;
};

struct apply_object {
    uint8_t kind, policy, pages, over;
    uint32_t module;                  /* of a variable */
    uint64_t address, bytes;          /* of a variable; the address in the terms of its file */
    uint64_t smallest, largest;       /* sizes of blocks that are meant, both included */
    uint64_t count;                   /* of blocks, where parts are over these */
    uint64_t chain_count;
    uint64_t chain[MAX_CHAIN];        /* return addresses in the terms of their files, that of the direct caller first */
    uint64_t chain_module[MAX_CHAIN];
    uint16_t node[FRACTIONS];         /* of parts; NO_NODE: as without a policy */
    /* What was done. */
    _Atomic uint64_t applied;         /* variables or blocks that have the policy */
    _Atomic uint64_t applied_bytes;
    _Atomic uint64_t refused;         /* for which the kernel refused it */
    _Atomic uint64_t error;           /* the last of its errors, an errno */
    _Atomic uint64_t other_size;      /* blocks of this code that are smaller or larger than those that are meant */
    _Atomic uint64_t touched;         /* for which memory was touched from its nodes, since policies are refused */
    uint64_t reserved[3];
    _Atomic uint64_t pages_on[COUNTED_NODES]; /* by node, as seen at the end or before a block was freed; the last one is of all others */
    uint64_t rest[16];
};

struct apply_table {
    struct apply_header header;
    struct apply_node node[MAX_NODES];
    struct apply_module module[MAX_MODULES];
    struct apply_object object[MAX_OBJECTS];
};

_Static_assert(sizeof(struct apply_header) == 64 * 8 && sizeof(struct apply_node) == 8 &&
                   sizeof(struct apply_module) == 8 * 8 && sizeof(struct apply_object) == 128 * 8,
               "the reader has the same layout");

#endif
