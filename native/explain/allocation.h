/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The log of allocations: a ring of its own, so that it works while samples come by another road. Blocks, mappings and
 * stacks from a size on are written, and of smaller blocks a sample by bytes. crates/sys/src/allocation_log has the same
 * layout. */
#ifndef ALLOCATION_H
#define ALLOCATION_H

#include "thread.h"
#include "shared_ring.h"
#include <sys/types.h>

enum {
    LOG_VERSION = 1,
    FRAMES = 16,
    PIECE_BYTES = 560,
};

#define LOG_MAGIC UINT64_C(0x434c4c41414d554e) /* "NUMAALLC" */

enum kind {
    PROCESS_BEGAN = 1,    /* with a new address space; `address`: its table of sites; `other`: its parent */
    PROCESS_FORKED,       /* with a copy of that of its parent, `other` */
    THREAD_BEGAN,         /* its stack; `other`: the thread's base; the frame is its function */
    THREAD_ENDED,
    BLOCK_ALLOCATED,      /* `other`: the alignment that was requested, or 0 */
    BLOCK_SAMPLED,        /* the same for a block below the threshold */
    BLOCK_FREED,          /* comes before the free: from then on another thread may get the address */
    BLOCK_KEPT,           /* realloc failed: the block freed last at this address is there still */
    MAPPED,               /* `other`: protection, and flags << 32 */
    UNMAPPED,             /* comes before the call */
    UNMAPPED_NOT,         /* the call failed */
};

enum function {
    BY_NONE, BY_MALLOC, BY_CALLOC, BY_REALLOC, BY_MEMALIGN, BY_POSIX_MEMALIGN, BY_ALIGNED_ALLOC, BY_VALLOC, BY_PVALLOC,
    BY_FREE, BY_MMAP, BY_MUNMAP, BY_MREMAP,
};

/* Most libraries have no frame pointers, so `frames` may lack functions or end early. With the piece of the stack the
 * observer can unwind by the tables of .eh_frame; to copy it costs nothing that can be measured beside the system calls for
 * time and CPU. What is freed needs the direct caller only. */
struct allocation {
    uint32_t process, thread;
    uint64_t time;                /* CLOCK_MONOTONIC, ns */
    uint64_t address, size, other;
    uint32_t cpu;
    uint8_t kind, function, frame_count, reserved;
    uint64_t stack_pointer;       /* of the caller, behind the call */
    uint64_t frame_pointer;       /* of the caller */
    uint64_t piece_bytes;
    uint64_t frames[FRAMES];      /* return addresses; the first is the direct caller */
    uint8_t piece[PIECE_BYTES];   /* the stack from `stack_pointer` on; only the first `piece_bytes` are set */
};

/* What a thread knows. A signal's handler that allocates uses it as well. */
struct own_log {
    int64_t left;                 /* bytes until a small block is sampled */
    uint64_t random;
    uintptr_t inside;             /* the frame of this library's function that has called the allocator */
    struct thread *record;
    uint32_t thread;
};
extern __thread struct own_log own_log __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Blocks of this size and more are written; SIZE_MAX without a log. It is lower for the first blocks. */
extern size_t log_least __attribute__((visibility("hidden")));

/* Attaches to the log that the environment names. */
bool log_begin(char **environment);
bool log_is_attached(void);
void log_begin_child(void);
void log_end(void);
/* For good: the program filters its system calls. */
void log_stop(void);

/* The calling thread begins: its stack ends above the frame. `record` is its own until the thread ends. */
void log_thread_began(struct thread *record, uint64_t low, uint64_t high, void *function);
void log_thread_ended(void);

/* A record with the call chain above the frame of the caller in this library. */
void log_write(enum kind kind, enum function function, uint64_t address, uint64_t size, uint64_t other,
               const void *frame);

/* A block or mapping of this size is written. */
void log_count(size_t size);
/* Decides about a block that reached the threshold or the thread's countdown. */
void log_block(enum function function, void *block, size_t size, size_t alignment, const void *frame);
/* The block, which may be in the log, will be freed. True if it is. */
bool log_free(enum function function, void *block, const void *frame);
/* The block has not been freed after all. */
void log_kept(void *block, const void *frame);

#endif
