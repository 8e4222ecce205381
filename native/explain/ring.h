/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The ring of samples. crates/sys/src/sample_ring.rs has the same layout. */
#ifndef RING_H
#define RING_H

#include "shared_ring.h"

enum {
    RING_VERSION = 2,
    GENERAL = 32,             /* x86-64: 16 in the order of instruction encoding; AArch64: x0 to x30, sp */
    STACK_BYTES = 416,
    BELOW_STACK = 128,        /* functions that call nothing keep values below the stack pointer */
    X86_64 = 1,
    AARCH64 = 2,
    HAS_GS = 1,               /* `gs_base` is known */
    HAS_FAULTS = 2,           /* `faults`, `cpu_time` and `kernel_time` are known */
};

#define RING_MAGIC UINT64_C(0x4c504d53414d554e) /* "NUMASMPL" */

struct sample {
    uint32_t process, thread;
    uint64_t time;            /* CLOCK_MONOTONIC, ns */
    uint64_t cpu_time;        /* of the thread since its last sample, ns */
    uint32_t cpu;
    uint32_t overruns;        /* expirations of the timer that this sample stands for as well */
    uint32_t faults;          /* page faults of the thread since its last sample */
    uint16_t architecture, known;
    uint64_t ip, flags, fs_base, gs_base;
    uint64_t stack_address;
    uint32_t stack_bytes;
    uint32_t kernel_time;     /* the part of `cpu_time` that the kernel used, us */
    uint64_t general[GENERAL];
    uint8_t stack[STACK_BYTES];   /* only the first `stack_bytes` are set */
};

struct slot {
    _Atomic uint64_t sequence;
    struct sample sample;
};

/* Maps the ring that the environment names; false if there is none, or not of this version. */
bool ring_attach(char **environment);
bool ring_is_attached(void);

/* Writes a sample. Async-signal-safe. */
void ring_write(const struct sample *sample);

/* Whether the observer has drained lately. Async-signal-safe. */
bool ring_is_drained(uint64_t now);

/* Waits, at most 50 ms, until the observer has taken this process's samples. */
void ring_await(void);

/* The number of this process. */
uint32_t ring_process_id(void);
/* The process's own entry; never NULL. */
struct process_entry *ring_process(void);
/* In a forked child: takes an entry of its own. */
void ring_begin_child(void);
/* The process ends. */
void ring_end(void);

/* Counts a thread, which may have no timer. */
void ring_count_thread(bool has_timer);

#endif
