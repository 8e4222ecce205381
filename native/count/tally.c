/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "tally.h"
#include "base/allocator.h"
#include "base/environment.h"
#include "chains.h"
#include "lives.h"
#include "os.h"
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WEIGHT_ONE = 1024, MOST_EVERY = 1 << 30, LONG_NS = 50000 };

struct count_file *counts;

/* A child of a fork finds zeros here. */
static struct own {
    _Atomic(struct count_process *) process;
    _Atomic bool is_claiming;
} *own;

/* Of this process, and inherited by its children. */
static uint64_t image, last_place;
static bool has_image;
static word live;
static _Atomic uint64_t every;
static uint64_t own_bytes;

static __thread struct counter counter __attribute__((tls_model("initial-exec")));

/* NULL if the allocator has none of its own. */
static __typeof__(&malloc_usable_size) usable_bytes;
static NEXT_DEFINE(malloc_usable_size)

static const void *library_of(void *function)
{
    Dl_info about;
    /* Before glibc 2.34 a program may be linked without it. */
    return function && &dladdr && dladdr(function, &about) ? about.dli_fbase : NULL;
}

static struct count_process *claim(void)
{
    uint64_t place = atomic_fetch_add(&counts->header.processes, 1);
    bool has_entry = place < PROCESSES - 1;
    place = has_entry ? place : PROCESSES - 1;
    struct count_process *process = &counts->processes[place];
    atomic_store(&process->parent, has_image ? last_place + 1 : 0);
    if (!has_image)
        image = place;
    has_image = true;
    last_place = place;
    process->image = image;
    add(&process->live, atomic_load(&live));
    atomic_store(&process->peak, atomic_load(&process->live));
    process->own_bytes = own_bytes;
    atomic_store(&process->pid, has_entry ? (uint64_t)os_process() : 0);
    if (!usable_bytes)
        add(&counts->header.no_usable, 1);
    return process;
}

static struct count_process *process_here(void)
{
    struct count_process *process = atomic_load_explicit(&own->process, memory_order_acquire);
    if (__builtin_expect(process != NULL, 1))
        return process;
    /* A second thread may come before the first has an entry. */
    if (atomic_exchange(&own->is_claiming, true))
        return &counts->processes[PROCESSES - 1];
    process = claim();
    atomic_store_explicit(&own->process, process, memory_order_release);
    return process;
}

/* Keeps the least of all processes. */
static void note_least(word *least, uint64_t value)
{
    uint64_t before = atomic_load(least);
    while ((before == 0 || value < before) && !atomic_compare_exchange_weak(least, &before, value))
        ;
}

static void measure_clock(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 64; i++) {
        uint64_t from = ticks(), took = ticks() - from;
        least = took < least ? took : least;
    }
    note_least(&counts->header.pair_ticks, least);
}

void tally_outside(uint64_t ticks)
{
    note_least(&counts->header.outside_ticks, ticks);
}

static struct count_file *open_file(void)
{
    struct observer_file found;
    /* All its pages now, so that no page fault of the program is ours. */
    if (!environment_map(environ, "NUMA_COUNT", sizeof(struct count_file), MAP_POPULATE, &found))
        return NULL;
    struct count_file *file = found.memory;
    bool is_ours = file->header.magic == COUNT_MAGIC && file->header.version == COUNT_VERSION &&
                   file->header.token == found.token;
    return is_ours ? file : NULL;
}

void tally_begin(void)
{
    static _Atomic bool has_begun;
    if (!environ || atomic_exchange(&has_begun, true))
        return;
    uint64_t faults = os_faults();
    struct count_file *file = open_file();
    own = file ? os_allocate_wiped(sizeof *own) : NULL;
    if (!own)
        return;
    usable_bytes = NEXT(malloc_usable_size);
    if (library_of((void *)usable_bytes) != library_of((void *)ALLOCATOR(malloc)))
        usable_bytes = NULL;
    own_bytes = lives_begin();
    atomic_store(&every, file->header.every ? file->header.every : 1);
    add(&file->header.own_faults, os_faults() - faults);
    counts = file;
    measure_clock();
    (void)process_here();
}

void tally_begin_chains(void)
{
    if (!counts)
        return;
    if (!chains_begin(counts->header.has_chains))
        add(&counts->header.no_unwinder, 1);
    /* Later the program may have forbidden itself to open files. */
    chains_note_modules(counts, image);
}

void tally_look(struct counter *counter)
{
    counter->cpu = os_time(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t tally_ran(struct counter *counter, uint64_t took)
{
    uint64_t scale = counts->header.ns_per_tick, before = counter->cpu;
    uint64_t ns = (uint64_t)((unsigned __int128)took * scale >> 32);
    if (ns < LONG_NS)
        return took;
    tally_look(counter);
    uint64_t ran = counter->cpu - before;
    return ran < ns ? (uint64_t)(((unsigned __int128)ran << 32) / scale) : took;
}

static uint64_t next_random(struct counter *counter)
{
    uint64_t x = counter->random;
    x ^= x << 13;
    x ^= x >> 7;
    return counter->random = x ^ x << 17;
}

/* From any place to the next one, where places are 0 to 2 * `every` apart: the smaller of two numbers. */
static int64_t first_gap(struct counter *counter)
{
    uint64_t width = 2 * atomic_load_explicit(&every, memory_order_relaxed);
    uint64_t a = next_random(counter) % width, b = next_random(counter) % width;
    return (int64_t)(a < b ? a : b);
}

static __attribute__((noinline)) struct counter *counter_begin(void)
{
    if (!counts)
        tally_begin();
    if (!counts)
        return NULL;
    uint64_t number = atomic_fetch_add(&counts->header.threads, 1);
    counter.random = (ticks() ^ (uintptr_t)&counter) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    counter.gap = first_gap(&counter);
    tally_look(&counter);
    counter.shard = &counts->shards[number % SHARDS];
    return &counter;
}

struct counter *counter_here(void)
{
    return __builtin_expect(counter.shard != NULL, 1) ? &counter : counter_begin();
}

/* Four steps for each power of two; the step of a size contains it. */
static unsigned step_of(size_t bytes)
{
    if (bytes < 4)
        return (unsigned)bytes;
    unsigned log = 63 - (unsigned)__builtin_clzll(bytes);
    return (log - 1) * 4 + (unsigned)(bytes >> (log - 2) & 3);
}

static unsigned log_of(uint64_t number)
{
    return number < 2 ? 0 : 63 - (unsigned)__builtin_clzll(number);
}

/* Whether the block contains a place; then its weight: 1 by the chance that it does, which is s/N - s^2/(4N^2) for places
 * that are 0 to 2N apart. */
static inline bool is_sampled(struct counter *counter, size_t bytes, uint32_t *weight)
{
    uint64_t mean = atomic_load_explicit(&every, memory_order_relaxed);
    size_t size = bytes ? bytes : 1;
    *weight = WEIGHT_ONE;
    if (mean == 1)
        return true;
    counter->gap -= size < INT64_MAX ? (int64_t)size : INT64_MAX;
    if (__builtin_expect(counter->gap >= 0, 1))
        return false;
    if (size >= 2 * mean) {
        counter->gap = first_gap(counter);
        return true;
    }
    while (counter->gap < 0)
        counter->gap += (int64_t)(next_random(counter) % (2 * mean));
    double part = (double)size / (double)mean, chance = part - part * part / 4;
    double whole = WEIGHT_ONE / chance;
    *weight = whole < UINT32_MAX ? (uint32_t)whole : UINT32_MAX;
    return true;
}

static void thin(void)
{
    uint64_t now = atomic_load(&every);
    if (now > 1 && now < MOST_EVERY && lives_are_many())
        atomic_compare_exchange_strong(&every, &now, 2 * now);
}

static void sample(struct counter *counter, void *block, size_t bytes, uint32_t weight, uint64_t allocated)
{
    long site = chains_site(counts, image, counter->caller);
    if (site < 0) {
        add(&counts->header.lost_sites, 1);
    } else {
        add(&counts->sites[site].samples, 1);
        add(&counts->sites[site].blocks, weight);
        add(&counts->sites[site].bytes, (uint64_t)weight * bytes / WEIGHT_ONE);
    }
    struct life life = {ticks(), allocated, weight, (uint32_t)(site + 1)};
    if (!lives_add(block, life))
        add(&counts->header.lost_lives, 1);
    thin();
    tally_look(counter);
}

static void note_peak(struct count_process *process, uint64_t now)
{
    uint64_t peak = atomic_load_explicit(&process->peak, memory_order_relaxed);
    while ((int64_t)now > (int64_t)peak &&
           !atomic_compare_exchange_weak_explicit(&process->peak, &peak, now, memory_order_relaxed, memory_order_relaxed))
        ;
}

void tally_taken(struct counter *counter, enum taking how, void *block, size_t bytes)
{
    struct count_shard *shard = counter->shard;
    if (!block) {
        add(&shard->failed, 1);
        return;
    }
    size_t usable = usable_bytes ? usable_bytes(block) : 0;
    add(&shard->usable, usable);
    if (how != BY_MALLOC)
        add(how == BY_CALLOC ? &shard->zeroed : how == BY_ALIGNED ? &shard->aligned : &shard->reallocs, 1);
    struct count_size *size = &shard->sizes[step_of(bytes)];
    add(&size->blocks, 1);
    add(&size->bytes, bytes);
    struct count_process *process = process_here();
    uint64_t allocated = atomic_fetch_add_explicit(&process->allocated, usable, memory_order_relaxed) + usable;
    add(&live, usable);
    note_peak(process, atomic_fetch_add_explicit(&process->live, usable, memory_order_relaxed) + usable);
    uint32_t weight;
    if (is_sampled(counter, bytes, &weight))
        sample(counter, block, bytes, weight, allocated);
}

struct gone tally_forget(void *block)
{
    struct life life;
    struct gone gone = {.usable = usable_bytes ? usable_bytes(block) : 0};
    gone.is_sampled = lives_end(block, &life);
    if (gone.is_sampled) {
        gone.weight = life.weight;
        gone.site = life.site;
        gone.begin_ticks = life.begin_ticks;
        gone.begin_bytes = life.begin_bytes;
    }
    return gone;
}

static void add_life(struct count_life *lives, uint64_t length, const struct gone *gone)
{
    struct count_life *life = &lives[log_of(length)];
    add(&life->blocks, gone->weight);
    add(&life->bytes, (uint64_t)gone->weight * gone->usable / WEIGHT_ONE);
}

void tally_gave(struct counter *counter, const struct gone *gone)
{
    struct count_process *process = process_here();
    add(&counter->shard->frees, 1);
    add(&live, -(uint64_t)gone->usable);
    add(&process->live, -(uint64_t)gone->usable);
    if (!gone->is_sampled)
        return;
    uint64_t took = ticks() - gone->begin_ticks;
    took = (int64_t)took < 0 ? 0 : took;
    uint64_t ns = (uint64_t)((unsigned __int128)took * counts->header.ns_per_tick >> 32);
    uint64_t allocated = atomic_load_explicit(&process->allocated, memory_order_relaxed);
    add_life(counts->by_time, ns, gone);
    add_life(counts->by_bytes, allocated > gone->begin_bytes ? allocated - gone->begin_bytes : 0, gone);
    if (gone->site == 0)
        return;
    struct count_site *site = &counts->sites[gone->site - 1];
    add(&site->freed_blocks, gone->weight);
    add(&site->freed_bytes, (uint64_t)gone->weight * gone->usable / WEIGHT_ONE);
    add(&site->life_us, (uint64_t)((double)ns / 1000 * gone->weight / WEIGHT_ONE));
}

void tally_kept(void *block, const struct gone *gone)
{
    if (gone->is_sampled)
        (void)lives_add(block, (struct life){gone->begin_ticks, gone->begin_bytes, gone->weight, gone->site});
}
