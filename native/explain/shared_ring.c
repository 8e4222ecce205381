/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "shared_ring.h"
#include "base/environment.h"
#include "os.h"

_Static_assert(sizeof(struct process_entry) == 64, "the reader has the same layout");
_Static_assert(offsetof(struct ring, head) == 64 && offsetof(struct ring, tail) == 128 &&
                   offsetof(struct ring, lost) == 192 && offsetof(struct ring, wanted) == 256,
               "the reader has the same layout");

enum { MAX_ENTRIES = 1 << 16 };

static bool is_ours(const struct ring *candidate, size_t bytes, uint64_t token)
{
    uint64_t count = candidate->slots, processes = candidate->entries;
    return candidate->slot_bytes == SLOT_BYTES && candidate->token == token && count && count <= MAX_SLOTS &&
           (count & (count - 1)) == 0 && processes && processes <= MAX_ENTRIES && processes % 64 == 0 &&
           bytes == HEADER_BYTES + processes * sizeof(struct process_entry) + count * SLOT_BYTES;
}

static struct process_entry *entry_of(struct shared_ring *shared, uint64_t process)
{
    /* The same process after exec keeps its entry. */
    for (uint64_t at = 0; at < shared->entry_count; at++)
        if (atomic_load_explicit(&shared->entries[at].identity, memory_order_relaxed) == process)
            return &shared->entries[at];
    for (uint64_t at = 0; at < shared->entry_count; at++) {
        struct process_entry *entry = &shared->entries[(process + at) % shared->entry_count];
        uint64_t free = 0;
        if (atomic_load_explicit(&entry->identity, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&entry->identity, &free, process)) {
            atomic_fetch_add(&shared->ring->processes, 1);
            return entry;
        }
    }
    atomic_fetch_add(&shared->ring->processes, 1);
    atomic_fetch_add(&shared->ring->processes_without_entry, 1);
    return NULL;
}

static void take_entry(struct shared_ring *shared)
{
    shared->process = (uint32_t)os_process();
    struct process_entry *found = entry_of(shared, shared->process);
    if (found) {
        atomic_store(&found->state, SAMPLED);
        atomic_store(&found->since, os_now());
    }
    atomic_store(&shared->own, found ? found : &shared->nobody);
}

bool shared_attach(struct shared_ring *shared, char **environment, const char *variable, uint64_t magic,
                   uint64_t version)
{
    struct observer_file file;
    if (!environment_map(environment, variable, HEADER_BYTES, 0, &file))
        return false;
    struct ring *candidate = file.memory;
    /* In a PID namespace of its own a process has another number than its observer knows. */
    if (!os_process_is_in_proc() || candidate->magic != magic || candidate->version != version ||
        !is_ours(candidate, file.bytes, file.token) || os_seccomp_filters() > candidate->filters) {
        os_unmap(candidate, file.bytes);
        return false;
    }
    shared->slot_count = candidate->slots;
    shared->entry_count = candidate->entries;
    shared->entries = (struct process_entry *)((char *)candidate + HEADER_BYTES);
    shared->slots = (char *)(shared->entries + shared->entry_count);
    shared->ring = candidate;
    take_entry(shared);
    return true;
}

static bool claim(struct shared_ring *shared, uint64_t *position)
{
    struct ring *ring = shared->ring;
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    do {
        /* Between the two looks others may have written and the observer may have taken it: then the tail is ahead of this head,
         * and the ring is not full. */
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if ((int64_t)(head - tail) >= (int64_t)shared->slot_count)
            return false;
    } while (!atomic_compare_exchange_weak(&ring->head, &head, head + 1));
    *position = head;
    return true;
}

static void remember(struct shared_ring *shared, uint64_t end)
{
    uint64_t last = atomic_load_explicit(&shared->written, memory_order_relaxed);
    while ((int64_t)(end - last) > 0 && !atomic_compare_exchange_weak(&shared->written, &last, end))
        continue;
}

/* A page fault for every fifth slot would cost more than the writing. */
static void map_pages(struct shared_ring *shared, const char *slot)
{
    uint64_t chunk = (uint64_t)(slot - shared->slots) / CHUNK;
    uint64_t left = shared->slot_count * SLOT_BYTES - chunk * CHUNK;
    if (!atomic_load_explicit(&shared->mapped[chunk], memory_order_relaxed) &&
        !atomic_exchange(&shared->mapped[chunk], true))
        os_populate(shared->slots + chunk * CHUNK, left < CHUNK ? left : CHUNK);
}

bool shared_write(struct shared_ring *shared, const void *content, size_t bytes)
{
    uint64_t position;
    struct process_entry *process = shared_process(shared);
    if (!claim(shared, &position)) {
        atomic_fetch_add_explicit(&shared->ring->lost, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&process->lost, 1, memory_order_relaxed);
        return false;
    }
    char *slot = shared->slots + (position & (shared->slot_count - 1)) * SLOT_BYTES;
    _Atomic uint64_t *sequence = (_Atomic uint64_t *)slot;
    map_pages(shared, slot);
    uint64_t mark = (position + 1) | WRITING;
    atomic_store_explicit(sequence, mark, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    copy_words(slot + sizeof *sequence, content, bytes);
    /* After a stop in between, the position may have been given up and be another thread's: then its content is
     * damaged, and nobody's. */
    if (!atomic_compare_exchange_strong(sequence, &mark, position + 1))
        atomic_store(sequence, 0);
    atomic_fetch_add_explicit(&process->samples, 1, memory_order_relaxed);
    remember(shared, position + 1);
    return true;
}

struct process_entry *shared_process(struct shared_ring *shared)
{
    struct process_entry *own = atomic_load_explicit(&shared->own, memory_order_relaxed);
    return own ? own : &shared->nobody;
}

void shared_begin_child(struct shared_ring *shared)
{
    atomic_store(&shared->written, 0);
    for (size_t chunk = 0; chunk <= shared->slot_count * SLOT_BYTES / CHUNK && chunk < CHUNKS; chunk++)
        atomic_store_explicit(&shared->mapped[chunk], false, memory_order_relaxed);
    take_entry(shared);
}

void shared_end(struct shared_ring *shared)
{
    struct process_entry *process = shared_process(shared);
    if (process != &shared->nobody)
        atomic_fetch_or(&process->identity, UINT64_C(1) << 32);
}
