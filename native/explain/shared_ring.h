/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A ring of slots in the observer's memory file: all threads of all observed processes write, the observer takes. Nobody
 * waits for anybody: a full ring loses what is written, and counts it. crates/sys/src/shared_ring.rs has the same layout,
 * and creates it. */
#ifndef SHARED_RING_H
#define SHARED_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HEADER_BYTES = 4096,
    SLOT_BYTES = 768,
    MAX_SLOTS = 1 << 20,
    CHUNK = 1 << 16,
    CHUNKS = MAX_SLOTS * SLOT_BYTES / CHUNK,
};

/* In the sequence, the first word of a slot: position N is complete if it is N + 1, and being written if it is N + 1 with
 * WRITING. */
#define WRITING (UINT64_C(1) << 63)

/* One for each observed process. The process claims it, the observer releases it after the end. */
struct process_entry {
    _Atomic uint64_t identity;    /* process ID, and 1 << 32 when it ends; 0: free */
    _Atomic uint64_t threads, threads_without_timer, samples, lost;
    _Atomic uint64_t chain;       /* the calibration loop, while it runs */
    _Atomic uint64_t state;       /* enum process_state */
    _Atomic uint64_t since;
};

/* Why nothing of a process is written any more. */
enum process_state { SAMPLED, SIGNAL_HANDED_OVER, FILTERED, OBSERVER_GONE };

struct ring {
    uint64_t magic, version, slot_bytes, slots, entries, token;
    uint64_t filters;             /* number of seccomp filters of the observer */
    uint64_t reserved;
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
    _Atomic uint64_t beat;        /* the observer counts while it drains */
    _Alignas(64) _Atomic uint64_t lost;
    _Atomic uint64_t threads, threads_without_timer, processes, processes_without_entry;
    _Atomic uint64_t not_awaited; /* the beat at which a process that ended waited in vain */
    _Atomic uint64_t without_end; /* blocks of the log whose end nobody will see: there are too many at a time */
    _Alignas(64) _Atomic uint32_t wanted; /* a futex: processes that end ask the observer to drain */
};

/* What a process knows of a ring that it has mapped. */
struct shared_ring {
    struct ring *ring;            /* NULL: none */
    struct process_entry *entries;
    char *slots;
    /* Copies, since a program may overwrite the header. */
    uint64_t slot_count, entry_count;
    struct process_entry *_Atomic own, nobody;
    /* The position behind the last one that this process wrote. */
    _Atomic uint64_t written;
    /* Which parts of the slots this process has mapped. */
    atomic_bool mapped[CHUNKS];
    uint32_t process;
};

/* Copies in words of 8 bytes, the last one whole. Not by memcpy: sanitizers replace it, and refuse a stack with variables
 * of the program in between, or memory that other processes write. */
static inline void copy_words(void *to, const void *from, size_t bytes)
{
    _Atomic uint64_t *words = to;
    for (size_t at = 0; at * sizeof *words < bytes; at++) {
        uint64_t word;
        __builtin_memcpy(&word, (const char *)from + at * sizeof word, sizeof word);
        atomic_store_explicit(&words[at], word, memory_order_relaxed);
    }
}

/* Maps the ring that a variable of the environment names; false if there is none, or not of this kind and version. */
bool shared_attach(struct shared_ring *shared, char **environment, const char *variable, uint64_t magic,
                   uint64_t version);

/* Writes a slot behind its sequence; false if it is lost. Async-signal-safe. */
bool shared_write(struct shared_ring *shared, const void *content, size_t bytes);

/* The process's own entry; never NULL. */
struct process_entry *shared_process(struct shared_ring *shared);
/* In a forked child: takes an entry of its own. */
void shared_begin_child(struct shared_ring *shared);
/* The process ends. */
void shared_end(struct shared_ring *shared);

#endif
