/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "ring.h"
#include "environment.h"
#include "os_linux.h"
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct slot) == 768, "the reader has the same layout");
_Static_assert(sizeof(struct process_entry) == 64, "the reader has the same layout");
_Static_assert(offsetof(struct ring, head) == 64 && offsetof(struct ring, tail) == 128 &&
                   offsetof(struct ring, lost) == 192 && offsetof(struct ring, wanted) == 256,
               "the reader has the same layout");

enum { MAX_SLOTS = 1 << 20, MAX_ENTRIES = 1 << 16, CHUNK = 1 << 16, CHUNKS = MAX_SLOTS * sizeof(struct slot) / CHUNK, WAIT_NS = 50000000, STEP_NS = 500000 };
/* An observer that has not drained for this time is gone; on a busy machine it may be late by seconds. */
#define GONE_NS UINT64_C(10000000000)

static struct ring *ring;
static struct process_entry *entries;
static struct slot *slots;
/* Copies, since a program may overwrite the header. */
static uint64_t slot_count, entry_count;
static struct process_entry nobody;
static struct process_entry *_Atomic own = &nobody;
/* The position behind the last sample of this process. */
static _Atomic uint64_t written;
static uint32_t process_id;
/* Which parts of the slots this process has mapped. */
static atomic_bool mapped[CHUNKS];
static _Atomic uint64_t last_beat, last_beat_seen;

/* "PATH:TOKEN", with the token in hexadecimal digits. */
static bool parse(const char *value, char *path, size_t room, uint64_t *token)
{
    const char *colon = strrchr(value, ':');
    if (!colon || (size_t)(colon - value) >= room || colon == value)
        return false;
    memcpy(path, value, (size_t)(colon - value));
    path[colon - value] = 0;
    char *end;
    *token = strtoull(colon + 1, &end, 16);
    return end != colon + 1 && *end == 0;
}

static bool is_ours(const struct ring *candidate, size_t bytes, uint64_t token)
{
    uint64_t count = candidate->slots, processes = candidate->entries;
    return candidate->magic == RING_MAGIC && candidate->version == RING_VERSION &&
           candidate->slot_bytes == sizeof(struct slot) && candidate->token == token && count && count <= MAX_SLOTS &&
           (count & (count - 1)) == 0 && processes && processes <= MAX_ENTRIES && processes % 64 == 0 &&
           bytes == HEADER_BYTES + processes * sizeof(struct process_entry) + count * sizeof(struct slot);
}

static void take_entry(void)
{
    uint64_t process = process_id = (uint32_t)os_process();
    struct process_entry *found = NULL;
    /* The same process after exec keeps its entry. */
    for (uint64_t at = 0; at < entry_count && !found; at++)
        if (atomic_load_explicit(&entries[at].identity, memory_order_relaxed) == process)
            found = &entries[at];
    for (uint64_t at = 0; at < entry_count && !found; at++) {
        struct process_entry *entry = &entries[(process + at) % entry_count];
        uint64_t free = 0;
        if (atomic_load_explicit(&entry->identity, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&entry->identity, &free, process)) {
            found = entry;
            atomic_fetch_add(&ring->processes, 1);
        }
    }
    if (found) {
        atomic_store(&found->state, SAMPLED);
        atomic_store(&found->since, os_now());
    } else {
        atomic_fetch_add(&ring->processes, 1);
        atomic_fetch_add(&ring->processes_without_entry, 1);
    }
    atomic_store(&own, found ? found : &nobody);
}

bool ring_attach(char **environment)
{
    char path[256];
    uint64_t token;
    size_t bytes = 0;
    const char *value = environment_find(environment, "NUMA_SAMPLES");
    /* In a PID namespace of its own a process has another number than its observer knows. */
    if (!value || !parse(value, path, sizeof path, &token) || !os_process_is_in_proc())
        return false;
    struct ring *candidate = os_map_shared(path, HEADER_BYTES, &bytes);
    if (!candidate)
        return false;
    if (!is_ours(candidate, bytes, token) || os_seccomp_filters() > candidate->filters) {
        os_unmap(candidate, bytes);
        return false;
    }
    slot_count = candidate->slots;
    entry_count = candidate->entries;
    entries = (struct process_entry *)((char *)candidate + HEADER_BYTES);
    slots = (struct slot *)(entries + entry_count);
    ring = candidate;
    atomic_store(&last_beat, atomic_load(&ring->beat));
    atomic_store(&last_beat_seen, os_now());
    take_entry();
    return true;
}

bool ring_is_attached(void)
{
    return ring;
}

static bool claim(uint64_t *position)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    do {
        if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) >= slot_count)
            return false;
    } while (!atomic_compare_exchange_weak(&ring->head, &head, head + 1));
    *position = head;
    return true;
}

static void remember(uint64_t end)
{
    uint64_t last = atomic_load_explicit(&written, memory_order_relaxed);
    while ((int64_t)(end - last) > 0 && !atomic_compare_exchange_weak(&written, &last, end))
        continue;
}

/* A page fault for every fifth sample would cost more than the samples. */
static void map_pages(const struct slot *slot)
{
    uint64_t chunk = (uint64_t)((const char *)slot - (const char *)slots) / CHUNK;
    uint64_t left = slot_count * sizeof *slot - chunk * CHUNK;
    if (!atomic_load_explicit(&mapped[chunk], memory_order_relaxed) && !atomic_exchange(&mapped[chunk], true))
        os_populate((char *)slots + chunk * CHUNK, left < CHUNK ? left : CHUNK);
}

void ring_write(const struct sample *sample)
{
    uint64_t position;
    struct process_entry *process = ring_process();
    if (!claim(&position)) {
        atomic_fetch_add_explicit(&ring->lost, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&process->lost, 1, memory_order_relaxed);
        return;
    }
    struct slot *slot = &slots[position & (slot_count - 1)];
    map_pages(slot);
    uint64_t mark = (position + 1) | WRITING;
    atomic_store_explicit(&slot->sequence, mark, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    memcpy(&slot->sample, sample, offsetof(struct sample, stack) + sample->stack_bytes);
    /* After a stop in between, the position may have been given up and be another thread's: then its sample is
     * damaged, and nobody's. */
    if (!atomic_compare_exchange_strong(&slot->sequence, &mark, position + 1))
        atomic_store(&slot->sequence, 0);
    atomic_fetch_add_explicit(&process->samples, 1, memory_order_relaxed);
    remember(position + 1);
}

bool ring_is_drained(uint64_t now)
{
    uint64_t beat = atomic_load_explicit(&ring->beat, memory_order_relaxed);
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
    return (int64_t)(atomic_load(&ring->tail) - end) >= 0;
}

void ring_await(void)
{
    uint64_t end = atomic_load(&written), beat, begin;
    if (!ring || end == 0 || is_taken(end))
        return;
    beat = atomic_load(&ring->beat);
    /* Another process has waited for this observer in vain, and it has not moved since. */
    if (atomic_load(&ring->not_awaited) == beat + 1)
        return;
    begin = os_now();
    do {
        atomic_fetch_add(&ring->wanted, 1);
        os_wake(&ring->wanted);
        os_sleep(STEP_NS);
        if (is_taken(end))
            return;
    } while (os_now() - begin < WAIT_NS);
    if (atomic_load(&ring->beat) == beat)
        atomic_store(&ring->not_awaited, beat + 1);
}

uint32_t ring_process_id(void)
{
    return process_id;
}

struct process_entry *ring_process(void)
{
    return atomic_load_explicit(&own, memory_order_relaxed);
}

void ring_begin_child(void)
{
    atomic_store(&written, 0);
    for (size_t chunk = 0; chunk < slot_count * sizeof(struct slot) / CHUNK + 1 && chunk < CHUNKS; chunk++)
        atomic_store_explicit(&mapped[chunk], false, memory_order_relaxed);
    take_entry();
}

void ring_end(void)
{
    struct process_entry *process = ring_process();
    if (process != &nobody)
        atomic_fetch_or(&process->identity, UINT64_C(1) << 32);
}

void ring_count_thread(bool has_timer)
{
    struct process_entry *process = ring_process();
    atomic_fetch_add(&ring->threads, 1);
    atomic_fetch_add(&process->threads, 1);
    if (has_timer)
        return;
    atomic_fetch_add(&ring->threads_without_timer, 1);
    atomic_fetch_add(&process->threads_without_timer, 1);
}
