/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "near.h"
#include "base/newer.h"
#include "messages.h"
#include "settings.h"
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <string.h>

/* How much glibc caches of the stacks of threads that have ended, unless a tunable changes it. */
enum { CACHE_BYTES = 40 << 20 };
static int max_cached = 1;
/* The number of cached stacks, estimated: a thread that gets one of them finds its pages where it was
 * used. */
static atomic_int cached;

void near_begin(void)
{
    size_t bytes;
    pthread_attr_t defaults;
    if (default_attributes(&defaults))
        return;
    if (pthread_attr_getstacksize(&defaults, &bytes) == 0 && bytes > 0 && CACHE_BYTES / bytes > 1)
        max_cached = (int)(CACHE_BYTES / bytes);
    pthread_attr_destroy(&defaults);
}

void near_stack_cached(void)
{
    int before = atomic_load(&cached);
    while (before < max_cached && !atomic_compare_exchange_weak(&cached, &before, before + 1))
        continue;
}

void near_forget(void)
{
    atomic_store(&cached, 0);
}

/* Whether the new thread gets new memory for its stack. */
static bool takes_fresh_stack(const struct start *start)
{
    if (start->place.bottom)
        return false;
    int before = atomic_load(&cached);
    while (before > 0 && !atomic_compare_exchange_weak(&cached, &before, before - 1))
        continue;
    return before == 0;
}

enum method {
    HERE,   /* the creator is on that node */
    VISIT,  /* the creator moves to the new thread's CPU meanwhile: new pages, huge ones too, are allocated there */
    PREFER, /* the creator stays and prefers the node: its policy allocates on other nodes, or the stack was used and its pages are there */
};

static enum method choose_method(const struct start *start, bool knows_policy, bool is_fresh)
{
    int node = start->place.node;
    if (knows_policy && !policy_is_local(&start->policy))
        return PREFER;
    if (thread_place()->node == node && node_of_cpu(os_cpu()) == node)
        return HERE;
    return is_fresh || !knows_policy ? VISIT : PREFER;
}

struct creation {
    create_function *create;
    pthread_t *thread;
    const pthread_attr_t *attributes;
    void *(*function)(void *);
    struct start *start;
    const struct cpus *mask;
};

static int create_here(const struct creation *all)
{
    return all->create(all->thread, all->attributes, all->function, all->start);
}

/* Touches the part of the creator's own stack that it uses in a visit, so that it is not allocated on the
 * other node. */
__attribute__((noinline)) static void make_own_stack(void)
{
    enum { BYTES = 16 << 10, STEP = 4 << 10, MIN = 4 * BYTES };
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), bottom = thread_place()->bottom;
    /* The bottom of the main thread's stack is unknown, and it is large enough. */
    if (bottom ? here < bottom + MIN : !os_is_main_thread())
        return;
    volatile char below[BYTES];
    for (size_t at = 0; at < BYTES; at += STEP)
        below[at] = 0;
    (void)below[0];
}

static int create_in_visit(const struct creation *all)
{
    struct cpus before, now;
    make_own_stack();
    bool visits = os_mask(0, &before) == 0 && os_set_mask(0, all->mask) == 0;
    int result = create_here(all);
    /* A mask that another thread gave the creator meanwhile is kept. */
    if (visits && os_mask(0, &now) == 0 && memcmp(&now, all->mask, sizeof now) == 0)
        os_set_mask(0, &before);
    return result;
}

static int create_preferring(const struct creation *all)
{
    int node = all->start->place.node;
    struct policy before = all->start->policy, near = policy_of_node(MPOL_PREFERRED, node);
    int error = os_set_policy(&near);
    all->start->has_policy = error == 0;
    if (error == EINVAL)
        node_mark_without_memory(node);
    else if (error)
        warn_once(NO_POLICY, "cannot set a memory policy: %s. Stacks are moved when threads begin", strerror(error));
    int result = create_here(all);
    if (error == 0)
        os_set_policy(&before);
    return result;
}

int near_create(create_function *create, pthread_t *thread, const pthread_attr_t *attributes,
                void *(*function)(void *), struct start *start, const struct cpus *mask)
{
    struct creation all = {create, thread, attributes, function, start, mask};
    bool is_fresh = takes_fresh_stack(start), knows_policy = os_policy(&start->policy) == 0;
    int node = start->place.node;
    if (node < 0 || !node_has_memory(node) || (knows_policy && policy_forbids(&start->policy, node))) {
        start->place.node = -1;
        return create_here(&all);
    }
    switch (choose_method(start, knows_policy, is_fresh)) {
    case VISIT:
        return create_in_visit(&all);
    case PREFER:
        return create_preferring(&all);
    case HERE:
        break;
    }
    return create_here(&all);
}
