/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    LINE_BYTES = 1 << LINE_SHIFT,
    PRIVATE_SETS = PRIVATE_BYTES / LINE_BYTES / PRIVATE_WAYS,
    NODE_SETS = NODE_BYTES / LINE_BYTES / NODE_WAYS,
    NODE_OWNER = MAX_CPUS + 1, /* the first owner code of a node */
};

/* Ways hold line + 1; 0 is empty. The oldest way of a set is put out. */
struct cache {
    _Atomic uint32_t *ways;
    _Atomic uint32_t *next;
    uint32_t sets, count;
};

struct cpu model_cpu[MAX_CPUS];
_Atomic uint32_t *model_directory;
static struct cache private[MAX_CPUS], shared[MAX_NODES];

static uint32_t copy_in_node(int node)
{
    return 1u << (16 + node);
}

static uint32_t owner_of(uint32_t state)
{
    return (state & OWNER_MASK) >> OWNER_SHIFT;
}

/* The node that has a line dirty; -1 when nobody has. */
static int dirty_node(uint32_t state)
{
    uint32_t owner = owner_of(state);
    if (owner == 0)
        return -1;
    return owner < NODE_OWNER ? machine.node_of_cpu[owner - 1] : (int)(owner - NODE_OWNER);
}

static bool cache_create(struct cache *cache, uint32_t sets, uint32_t ways)
{
    cache->sets = sets;
    cache->count = ways;
    cache->ways = calloc((size_t)sets * ways, sizeof *cache->ways);
    cache->next = calloc(sets, sizeof *cache->next);
    return cache->ways && cache->next;
}

static void cache_empty(struct cache *cache)
{
    memset(cache->ways, 0, (size_t)cache->sets * cache->count * sizeof *cache->ways);
    memset(cache->next, 0, cache->sets * sizeof *cache->next);
}

/* Puts a line in; gives line + 1 of what was put out, 0 when there was room. */
static uint32_t cache_insert(struct cache *cache, uint32_t line)
{
    uint32_t set = line % cache->sets;
    _Atomic uint32_t *ways = cache->ways + (size_t)set * cache->count;
    for (uint32_t way = 0; way < cache->count; way++)
        if (atomic_load_explicit(&ways[way], memory_order_relaxed) == line + 1)
            return 0;
    uint32_t way = atomic_fetch_add_explicit(&cache->next[set], 1, memory_order_relaxed) % cache->count;
    return atomic_exchange_explicit(&ways[way], line + 1, memory_order_relaxed);
}

bool model_create(void)
{
    size_t bytes = (machine.bytes >> LINE_SHIFT) * sizeof *model_directory;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool good = memory != MAP_FAILED;
    model_directory = memory;
    for (int c = 0; c < machine.cpus; c++) {
        struct cpu *cpu = &model_cpu[c];
        cpu->self = 1u << c;
        cpu->node = machine.node_of_cpu[c];
        cpu->writable = cpu->self | (uint32_t)(c + 1) << OWNER_SHIFT;
        good = good && cache_create(&private[c], PRIVATE_SETS, PRIVATE_WAYS);
    }
    for (int n = 0; n < machine.nodes; n++)
        good = good && cache_create(&shared[n], NODE_SETS, NODE_WAYS);
    if (!good)
        fprintf(stderr, "simulator: no memory for a directory of %zu MiB\n", bytes >> 20);
    return good;
}

void model_empty(void)
{
    madvise(model_directory, (machine.bytes >> LINE_SHIFT) * sizeof *model_directory, MADV_DONTNEED);
    for (int c = 0; c < machine.cpus; c++)
        cache_empty(&private[c]);
    for (int n = 0; n < machine.nodes; n++)
        cache_empty(&shared[n]);
}

/* The private cache puts a line out: what it had dirty stays dirty in the node's cache. */
static void leave_private(struct cpu *cpu, uint32_t line)
{
    uint32_t state = atomic_load(&model_directory[line]), next;
    do {
        next = state & ~cpu->self;
        if ((state & (OWNER_MASK | cpu->self)) == cpu->writable)
            next = (next & ~OWNER_MASK) | (uint32_t)(NODE_OWNER + cpu->node) << OWNER_SHIFT;
    } while (!atomic_compare_exchange_weak(&model_directory[line], &state, next));
}

/* The node's cache puts a line out: its CPUs lose it, dirty data goes home. */
static void leave_node(struct cpu *cpu, uint32_t line, bool store)
{
    int node = cpu->node, home = machine_home(line);
    uint32_t lost = machine.node[node].cpus | copy_in_node(node);
    uint32_t state = atomic_load(&model_directory[line]), next;
    bool dirty;
    do {
        dirty = dirty_node(state) == node;
        next = state & ~(dirty ? lost | OWNER_MASK : lost);
    } while (!atomic_compare_exchange_weak(&model_directory[line], &state, next));
    if (dirty)
        cpu->counts.writebacks[node][home]++;
    if (home != node && (state & copy_in_node(node))) {
        if (dirty)
            cpu->counts.rollouts[store][line % BANKS]++;
        else
            cpu->counts.clean_rollouts++;
    }
}

static void insert(struct cpu *cpu, uint32_t line, bool store, bool in_node)
{
    uint32_t out;
    if (!in_node && (out = cache_insert(&shared[cpu->node], line)) != 0)
        leave_node(cpu, out - 1, store);
    if ((out = cache_insert(&private[cpu - model_cpu], line)) != 0)
        leave_private(cpu, out - 1);
}

static void wait_for(struct cpu *cpu, int source)
{
    int distance = machine.distance[cpu->node][source];
    cpu->counts.wait[source] += (uint64_t)MEMORY_WAIT * distance / LOCAL_DISTANCE;
}

/* Other nodes lose their copies: home asks each of them. */
static void invalidate_others(struct cpu *cpu, uint32_t state, int home)
{
    for (int n = 0; n < machine.nodes; n++) {
        if (n == cpu->node || !(state & copy_in_node(n)))
            continue;
        cpu->counts.probes[home][n]++;
        if (home != n)
            cpu->counts.invalidations[n]++;
    }
}

/* The line comes into the node: from the cache that has it dirty, else from its memory. */
static void bring(struct cpu *cpu, uint32_t state, int home, bool store)
{
    struct counts *counts = &cpu->counts;
    int owner = dirty_node(state), source = owner >= 0 ? owner : home;
    (store ? counts->modifies : counts->reads)[home]++;
    if (owner < 0) {
        counts->fetches[home]++;
    } else {
        counts->transfers[owner]++;
        if (!store) {
            counts->probes[home][owner]++;
            counts->writebacks[owner][home]++;
        }
    }
    wait_for(cpu, source);
}

/* The state after the access: a writer has the only copy, a reader one more; what was dirty in
 * another node is clean then, what was dirty in the own node belongs to the node. */
static uint32_t after(const struct cpu *cpu, uint32_t state, bool store)
{
    if (store)
        return cpu->writable | copy_in_node(cpu->node);
    uint32_t next = state | cpu->self | copy_in_node(cpu->node);
    int owner = dirty_node(state);
    if (owner < 0)
        return next;
    next &= ~OWNER_MASK;
    return owner == cpu->node ? next | (uint32_t)(NODE_OWNER + cpu->node) << OWNER_SHIFT : next;
}

void model_miss(struct cpu *cpu, uint32_t line, bool store)
{
    uint32_t state = atomic_load(&model_directory[line]);
    while (!atomic_compare_exchange_weak(&model_directory[line], &state, after(cpu, state, store)))
        ;
    int node = cpu->node, home = machine_home(line);
    bool in_node = (state & copy_in_node(node)) != 0;
    uint32_t copies_elsewhere = state & (0xffu << 16) & ~copy_in_node(node);
    struct counts *counts = &cpu->counts;
    if (home != node)
        counts->cache[store][in_node][line % BANKS]++;
    if (!in_node) {
        bring(cpu, state, home, store);
    } else if (store && copies_elsewhere) {
        counts->upgrades[home]++;
        wait_for(cpu, home);
    } else {
        /* A sibling CPU's dirty data comes through the node's cache. */
        if (owner_of(state) && owner_of(state) < NODE_OWNER && !(state & cpu->self))
            counts->transfers[node]++;
        counts->wait[node] += NODE_CACHE_WAIT;
    }
    if (store && copies_elsewhere)
        invalidate_others(cpu, state, home);
    insert(cpu, line, store, in_node);
}

void model_sum(int node, struct counts *sum)
{
    uint64_t *total = (uint64_t *)sum;
    memset(sum, 0, sizeof *sum);
    for (int c = 0; c < machine.cpus; c++) {
        const volatile uint64_t *part = (const uint64_t *)&model_cpu[c].counts;
        for (size_t i = 0; machine.node_of_cpu[c] == node && i < sizeof *sum / sizeof *part; i++)
            total[i] += part[i];
    }
}
