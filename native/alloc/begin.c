/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "begin.h"
#include "settings.h"
#include "statistics.h"
#include <pthread.h>

/* Before glibc 2.34 a program may be linked without threads. */
#pragma weak pthread_key_create
#pragma weak pthread_setspecific

static struct {
    struct lock lock;
    _Atomic bool is_ready;
    bool has_key;
    pthread_key_t key;
} process;

__thread bool holds_all_locks __attribute__((tls_model("initial-exec")));

/* After its destructors, a thread may still allocate and free. */
static __thread bool has_ended __attribute__((tls_model("initial-exec")));

static void end_thread(void *cache)
{
    cache_mine = NULL;
    has_ended = true;
    cache_return(cache);
}

static void before_fork(void)
{
    lock(&process.lock);
    caches_lock();
    if (regions)
        regions_lock();
    holds_all_locks = true;
}

static void after_fork(void)
{
    holds_all_locks = false;
    if (regions)
        regions_unlock();
    caches_unlock();
    unlock(&process.lock);
}

static void watch_threads_and_forks(void)
{
    if (&pthread_key_create && pthread_key_create(&process.key, end_thread) == 0)
        process.has_key = true;
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* This thread makes the process ready; what it calls may allocate. */
static __thread bool is_beginning __attribute__((tls_model("initial-exec")));

static bool begin_process(void)
{
    if (is_beginning || atomic_load_explicit(&process.is_ready, memory_order_acquire))
        return true;
    lock(&process.lock);
    if (!atomic_load_explicit(&process.is_ready, memory_order_relaxed)) {
        settings_read(os_environment());
        classes_prepare(os_limits_addresses());
        unsigned nodes = settings.profile == NUMA ? os_node_count() : 1;
        nodes = nodes > NODE_REGIONS ? NODE_REGIONS : nodes;
        bool has_policies = nodes > 1;
        unsigned count = nodes + has_policies;
        if (settings_may_map() && (space.base || space_prepare(count, has_policies ? nodes : 0)) &&
            regions_prepare(count)) {
            counts_begin(nodes, has_policies, settings.profile == NUMA);
            is_beginning = true;
            watch_threads_and_forks();
            is_beginning = false;
            atomic_store_explicit(&process.is_ready, true, memory_order_release);
        }
    }
    unlock(&process.lock);
    return atomic_load_explicit(&process.is_ready, memory_order_acquire);
}

struct cache *cache_slowly(void)
{
    if (!begin_process())
        return NULL;
    struct cache *cache = cache_begin();
    if (!cache || has_ended)
        return cache;
    cache_mine = cache;
    if (process.has_key)
        pthread_setspecific(process.key, cache);
    return cache;
}

void cache_after(struct cache *cache)
{
    if (__builtin_expect(has_ended, 0) && cache)
        cache_return(cache);
}

/* Before there are threads that could fork in the midst of it. */
__attribute__((constructor(101))) static void begin(void)
{
    (void)begin_process();
}

__attribute__((destructor)) static void end(void)
{
    if (settings.stats && regions)
        statistics_print();
}
