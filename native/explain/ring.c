/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "ring.h"
#include "os.h"

_Static_assert(sizeof(struct slot) == SLOT_BYTES, "the reader has the same layout");

enum { WAIT_NS = 50000000, STEP_NS = 500000 };
/* An observer that has not drained for this time is gone; on a busy machine it may be late by seconds. */
#define GONE_NS UINT64_C(10000000000)

static struct shared_ring shared;
static _Atomic uint64_t last_beat, last_beat_seen;

bool ring_attach(char **environment)
{
    if (!shared_attach(&shared, environment, "NUMA_SAMPLES", RING_MAGIC, RING_VERSION))
        return false;
    atomic_store(&last_beat, atomic_load(&shared.ring->beat));
    atomic_store(&last_beat_seen, os_now());
    return true;
}

bool ring_is_attached(void)
{
    return shared.ring;
}

void ring_write(const struct sample *sample)
{
    shared_write(&shared, sample, offsetof(struct sample, stack) + sample->stack_bytes);
}

bool ring_is_drained(uint64_t now)
{
    uint64_t beat = atomic_load_explicit(&shared.ring->beat, memory_order_relaxed);
    if (beat != atomic_load_explicit(&last_beat, memory_order_relaxed)) {
        atomic_store_explicit(&last_beat, beat, memory_order_relaxed);
        atomic_store_explicit(&last_beat_seen, now, memory_order_relaxed);
        return true;
    }
    uint64_t seen = atomic_load_explicit(&last_beat_seen, memory_order_relaxed);
    return now < seen || now - seen < GONE_NS;
}

static bool is_taken(uint64_t end)
{
    return (int64_t)(atomic_load(&shared.ring->tail) - end) >= 0;
}

void ring_await(void)
{
    uint64_t end = atomic_load(&shared.written), beat, begin;
    if (!shared.ring || end == 0 || is_taken(end))
        return;
    beat = atomic_load(&shared.ring->beat);
    /* Another process has waited for this observer in vain, and it has not moved since. */
    if (atomic_load(&shared.ring->not_awaited) == beat + 1)
        return;
    begin = os_now();
    do {
        atomic_fetch_add(&shared.ring->wanted, 1);
        os_wake(&shared.ring->wanted);
        os_sleep(STEP_NS);
        if (is_taken(end))
            return;
    } while (os_now() - begin < WAIT_NS);
    if (atomic_load(&shared.ring->beat) == beat)
        atomic_store(&shared.ring->not_awaited, beat + 1);
}

uint32_t ring_process_id(void)
{
    return shared.process;
}

struct process_entry *ring_process(void)
{
    return shared_process(&shared);
}

void ring_begin_child(void)
{
    shared_begin_child(&shared);
}

void ring_end(void)
{
    shared_end(&shared);
}

void ring_count_thread(bool has_timer)
{
    struct process_entry *process = ring_process();
    atomic_fetch_add(&shared.ring->threads, 1);
    atomic_fetch_add(&process->threads, 1);
    if (has_timer)
        return;
    atomic_fetch_add(&shared.ring->threads_without_timer, 1);
    atomic_fetch_add(&process->threads_without_timer, 1);
}
