/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pthread_create in place of the C library's. */
#define _GNU_SOURCE
#include "attributes.h"
#include "create.h"
#include "libraries.h"
#include "messages.h"
#include "settings.h"
#include "stack.h"
#include "starts.h"
#include "thread.h"
#include <dlfcn.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static create_function *_Atomic next;

static create_function *next_create(void)
{
    create_function *found = atomic_load_explicit(&next, memory_order_relaxed);
    if (!found) {
        void *symbol = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&found, &symbol, sizeof found);
        atomic_store(&next, found);
    }
    return found;
}

void create_begin(void)
{
    next_create();
}

/* First function of every placed thread. */
static void *begin(void *argument)
{
    struct start start = *(struct start *)argument;
    start_free(argument);
    bool is_given = start.place.bottom;
    if (!is_given)
        start.place.bottom = stack_top() - start.stack_bytes;
    thread_begin(&start.place);
    if (start.has_policy) {
        /* It was inherited while the parent had another one for this thread's stack. */
        os_set_policy(&start.policy);
        thread_keep_stack(&start.policy);
    }
    /* Memory of the caller's may have been touched anywhere. */
    stack_bring(start.place.node, start.place.bottom, is_given ? start.stack_bytes : STACK_LEFT);
    return start.function(start.argument);
}

/* What the thread gets: its mask in `mask`, its place in the start. */
static void choose(const struct wish *wish, struct start *start, struct cpus *mask, bool *is_ours)
{
    struct place *place = &start->place;
    int only;
    *is_ours = !wish->has_mask;
    if (wish->has_mask) {
        /* GCC's OpenMP has bound the main thread by now. */
        thread_follow_main();
        *mask = wish->mask;
        place->node = node_of_cpus(mask);
        place->core = cpus_count(mask, &only) == 1 ? cores_take_cpu(only) : NO_CORE;
        return;
    }
    *mask = settings()->mask;
    thread_bind_main();
    place->core = cores_take();
    if (place->core == NO_CORE)
        return;
    place->node = node_of_cpu(core_cpu(place->core));
    memset(mask, 0, sizeof *mask);
    cpus_add(mask, core_cpu(place->core));
}

/* Creates it while the calling thread prefers the new one's node: what the C library writes into
 * the new stack is there at once. */
static int create_near(pthread_t *thread, const pthread_attr_t *attributes, struct start *start)
{
    int node = start->place.node;
    if (!node_gives_memory(node)) {
        start->place.node = -1;
        return next_create()(thread, attributes, begin, start);
    }
    int error = os_policy(&start->policy);
    if (error == 0 && policy_forbids(&start->policy, node)) {
        start->place.node = -1;
        return next_create()(thread, attributes, begin, start);
    }
    struct policy before = start->policy, near = policy_of_node(MPOL_PREFERRED, node);
    if (error == 0)
        error = os_set_policy(&near);
    start->has_policy = error == 0;
    if (error == EINVAL)
        node_gives_none(node);
    else if (error)
        say_once(NO_POLICY, "cannot set a memory policy: %s. Stacks are moved when threads begin", strerror(error));
    int result = next_create()(thread, attributes, begin, start);
    if (error == 0)
        os_set_policy(&before);
    return result;
}

static int create_helper(pthread_t *thread, const struct wish *wish, void *(*function)(void *), void *argument)
{
    pthread_attr_t attributes;
    int error = attributes_make(&attributes, wish, &settings()->mask);
    if (error)
        return EINVAL;
    error = next_create()(thread, &attributes, function, argument);
    pthread_attr_destroy(&attributes);
    return error;
}

static int create_placed(pthread_t *thread, const struct wish *wish, enum owner owner, struct start *start)
{
    struct cpus mask;
    pthread_attr_t attributes;
    bool is_ours = false;
    if (owner == BINDING_RUNTIME && !wish->has_mask)
        mask = settings()->mask;
    else
        choose(wish, start, &mask, &is_ours);
    int core = start->place.core, node = start->place.node;
    /* A runtime finds the mask that its creator has. */
    bool is_set = is_ours || wish->has_mask;
    int error = attributes_make(&attributes, wish, is_set ? &mask : NULL);
    if (error == 0) {
        error = create_near(thread, &attributes, start);
        pthread_attr_destroy(&attributes);
    }
    if (error) {
        cores_release(core);
        start_free(start);
        if (error == EINVAL && core != NO_CORE && is_ours)
            say_once(CANNOT_BIND, "cannot create a thread on CPU %d, it is not bound", core_cpu(core));
    } else if (is_ours) {
        say_if_verbose("process %d: a thread is on %s %d, node %d", (int)os_process(),
                       core == NO_CORE ? "any CPU, all cores are taken:" : "CPU",
                       core == NO_CORE ? settings()->count : core_cpu(core), node);
    }
    return error;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*function)(void *), void *argument)
{
    thread_library_begin(environ);
    create_function *plain = next_create();
    struct wish wish;
    if (!plain)
        return EAGAIN;
    if (!settings()->active || !wish_of(attributes, &wish))
        return plain(thread, attributes, function, argument);
    enum owner owner = owner_of(function);
    if (owner == BINDING_RUNTIME && !settings()->runtime_binds)
        owner = PROGRAM;
    int error = EINVAL;
    if (owner == HELPERS && wish.has_mask)
        return plain(thread, attributes, function, argument);
    if (owner == HELPERS) {
        error = create_helper(thread, &wish, function, argument);
    } else {
        struct start *start = start_new(function, argument);
        if (start) {
            start->stack_bytes = wish.stack_bytes;
            start->place.bottom = (uintptr_t)wish.stack;
            error = create_placed(thread, &wish, owner, start);
        }
    }
    /* What cannot be done our way is done as if we were not here. */
    return error == EINVAL ? plain(thread, attributes, function, argument) : error;
}
