/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "allocation.h"
#include "blocks.h"
#include "base/environment.h"
#include "os.h"
#include "sites.h"
#include <string.h>

_Static_assert(sizeof(struct allocation) + 8 == SLOT_BYTES && offsetof(struct allocation, frames) == 72 &&
                   offsetof(struct allocation, piece) == 200,
               "the reader has the same layout");

enum { DEFAULT_LEAST = 64 << 10, SMALLEST_LEAST = 256, DEFAULT_PERIOD = 512 << 10, OFF_PERIOD = 1 << 20, PAGE = 4096 };

__thread struct own_log own_log;
size_t log_least = SIZE_MAX;
static struct shared_ring shared;
static uint64_t period;
/* At first the threshold is a page: the rows of an array are below it later, and mostly allocated at the start. */
static size_t usual_least;
static uint64_t first;
static _Atomic uint64_t first_blocks;
static atomic_bool is_on, piece_is_refused;

bool log_begin(char **environment)
{
    if (!shared_attach(&shared, environment, "NUMA_ALLOCATIONS", LOG_MAGIC, LOG_VERSION))
        return false;
    if (!blocks_begin())
        return false;
    size_t least = environment_number(environment, "NUMA_ALLOCATIONS_MIN", DEFAULT_LEAST);
    period = environment_number(environment, "NUMA_ALLOCATIONS_SAMPLE", DEFAULT_PERIOD);
    if (period > UINT64_C(1) << 40)
        period = UINT64_C(1) << 40;
    atomic_store(&is_on, true);
    uint64_t sites = period ? (uint64_t)(uintptr_t)sites_begin() : 0;
    own_log.left = 0;
    log_write(PROCESS_BEGAN, BY_NONE, sites, 0, (uint64_t)os_parent(), NULL);
    usual_least = least < SMALLEST_LEAST ? SMALLEST_LEAST : least;
    first = environment_number(environment, "NUMA_ALLOCATIONS_FIRST", 0);
    log_least = first && usual_least > PAGE ? PAGE : usual_least;
    return true;
}

bool log_is_attached(void)
{
    return atomic_load_explicit(&is_on, memory_order_relaxed);
}

void log_begin_child(void)
{
    uint32_t parent = shared.process;
    own_log.thread = 0;
    own_log.record = NULL;
    shared_begin_child(&shared);
    log_write(PROCESS_FORKED, BY_NONE, 0, 0, parent, NULL);
}

void log_end(void)
{
    shared_end(&shared);
}

void log_stop(void)
{
    if (!atomic_exchange(&is_on, false))
        return;
    log_least = SIZE_MAX;
    atomic_store(&shared_process(&shared)->state, FILTERED);
}

/* Whether all between this address and the end of the thread's stack is there. */
static uint64_t end_of_stack(uint64_t from)
{
    const struct thread *record = own_log.record;
    return record && from >= record->stack_low && from < record->stack_high ? record->stack_high : 0;
}

/* Return addresses along frame pointers. A function without one may have any number in its place: frames are then left
 * out, or end; what is read is always this thread's stack. */
static void take_frames(struct allocation *record, const uint64_t *frame, uint64_t end)
{
    uint64_t low = (uint64_t)(uintptr_t)frame, at = frame[0];
    record->frames[0] = frame[1];
    record->frame_count = 1;
    while (record->frame_count < FRAMES && at > low && at % sizeof at == 0 && end >= 16 && at <= end - 16) {
        const uint64_t *above = (const uint64_t *)(uintptr_t)at;
        if (above[1] < PAGE)
            break;
        record->frames[record->frame_count++] = above[1];
        low = at;
        at = above[0];
    }
}

static void take_piece(struct allocation *record, uint64_t from, uint64_t end)
{
    if (end) {
        record->piece_bytes = end - from < PIECE_BYTES ? (end - from) / 8 * 8 : PIECE_BYTES;
        copy_words(record->piece, (const void *)(uintptr_t)from, record->piece_bytes);
        return;
    }
    if (atomic_load_explicit(&piece_is_refused, memory_order_relaxed))
        return;
    long bytes = os_read_own(from, record->piece, PIECE_BYTES);
    if (bytes > 0)
        record->piece_bytes = (uint64_t)bytes;
    else
        atomic_store(&piece_is_refused, true);
}

static uint32_t own_thread(void)
{
    if (own_log.thread == 0)
        own_log.thread = (uint32_t)os_thread();
    return own_log.thread;
}

static void fill(struct allocation *record, enum kind kind, enum function function, uint64_t address, uint64_t size,
                 uint64_t other)
{
    record->process = shared.process;
    record->thread = own_thread();
    record->time = os_now();
    record->address = address;
    record->size = size;
    record->other = other;
    record->cpu = os_cpu();
    record->kind = (uint8_t)kind;
    record->function = (uint8_t)function;
    record->frame_count = record->reserved = 0;
    record->stack_pointer = record->frame_pointer = record->piece_bytes = 0;
    memset(record->frames, 0, sizeof record->frames);
}

static void write_record(const struct allocation *record)
{
    shared_write(&shared, record, offsetof(struct allocation, piece) + record->piece_bytes);
}

void log_write(enum kind kind, enum function function, uint64_t address, uint64_t size, uint64_t other,
               const void *frame)
{
    struct allocation record;
    if (!log_is_attached())
        return;
    fill(&record, kind, function, address, size, other);
    if (frame) {
        const uint64_t *words = frame;
        record.stack_pointer = (uint64_t)(uintptr_t)(words + 2);
        record.frame_pointer = words[0];
        bool ends = kind == BLOCK_FREED || kind == UNMAPPED;
        uint64_t end = ends ? 0 : end_of_stack(record.stack_pointer);
        take_frames(&record, words, end);
        if (!ends)
            take_piece(&record, record.stack_pointer, end);
    }
    write_record(&record);
}

static uint64_t thread_base(void)
{
    uint64_t base;
#if defined(__x86_64__)
    __asm__ volatile("mov %%fs:0, %0" : "=r"(base));
#else
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(base));
#endif
    return base;
}

/* The C library puts the thread's own block at the top of its stack's memory. */
static uint64_t top_of(uint64_t frame, uint64_t base)
{
    enum { THREAD_BLOCK = 2304 };
    uint64_t top = base + THREAD_BLOCK > frame && base - frame < 1 << 24 ? base + THREAD_BLOCK : frame;
    return (top + PAGE - 1) / PAGE * PAGE;
}

void log_thread_began(struct thread *record, uint64_t low, uint64_t high, void *function)
{
    struct allocation entry;
    own_log.record = record;
    own_log.left = 0;
    own_log.random = 0;
    if (!log_is_attached())
        return;
    uint64_t base = thread_base();
    /* Of a new thread only the size is known. */
    if (low == 0 && high) {
        uint64_t top = top_of((uint64_t)(uintptr_t)__builtin_frame_address(0), base);
        low = top > high ? top - high : 0;
        high = top;
    }
    fill(&entry, THREAD_BEGAN, BY_NONE, low, high - low, base);
    entry.frames[0] = (uint64_t)(uintptr_t)function;
    entry.frame_count = function ? 1 : 0;
    write_record(&entry);
}

void log_thread_ended(void)
{
    own_log.record = NULL;
    log_write(THREAD_ENDED, BY_NONE, 0, 0, 0, NULL);
}

static uint64_t next_random(void)
{
    uint64_t value = own_log.random;
    if (value == 0)
        value = (os_now() ^ (uint64_t)own_thread() << 32 ^ (uintptr_t)&own_log) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
    own_log.random = value;
    return value;
}

/* The bytes until the next sample, exponentially distributed: so the chance of a block depends on its size alone. */
static int64_t distance(void)
{
    uint64_t random = next_random() >> 11 | 1;
    int zeros = __builtin_clzll(random);
    /* The logarithm to base 2 of a number in [1, 2), within 0.005. */
    double x = (double)(random << zeros) * 0x1p-63 - 1, part = x * (1.346607 - 0.346607 * x);
    double bits = (double)(zeros - 10) - part;
    double bytes = (bits < 0 ? 0 : bits) * 0.6931471805599453 * (double)period;
    return 1 + (int64_t)bytes;
}

/* Whether a small block at which the countdown ended is the sample. */
static bool is_sample(void)
{
    bool is_first = own_log.random == 0;
    if (!log_is_attached() || period == 0) {
        own_log.left = OFF_PERIOD;
        return false;
    }
    if (is_first) {
        /* The thread's countdown had not begun. */
        own_log.left += distance();
        if (own_log.left >= 0)
            return false;
    }
    own_log.left = distance();
    return true;
}

void log_count(size_t size)
{
    if (size < usual_least && log_is_attached() && atomic_fetch_add(&first_blocks, 1) + 1 >= first)
        log_least = usual_least;
}

void log_block(enum function function, void *block, size_t size, size_t alignment, const void *frame)
{
    bool is_small = size < log_least;
    if (is_small && (sites_measure(frame) || !is_sample()))
        return;
    if (!block || !log_is_attached())
        return;
    /* Nobody would see its end; the reader replaces it when the address comes again. */
    if (!blocks_add(block))
        atomic_fetch_add(&shared.ring->without_end, 1);
    if (!is_small)
        log_count(size);
    log_write(is_small ? BLOCK_SAMPLED : BLOCK_ALLOCATED, function, (uint64_t)(uintptr_t)block, size, alignment, frame);
}

bool log_free(enum function function, void *block, const void *frame)
{
    if (!blocks_remove(block))
        return false;
    log_write(BLOCK_FREED, function, (uint64_t)(uintptr_t)block, 0, 0, frame);
    return true;
}

void log_kept(void *block, const void *frame)
{
    blocks_add(block);
    log_write(BLOCK_KEPT, BY_REALLOC, (uint64_t)(uintptr_t)block, 0, 0, frame);
}
