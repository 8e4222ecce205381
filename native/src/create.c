/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pthread_create and thrd_create in place of the C library's. */
#define _GNU_SOURCE
#include "attributes.h"
#include "children.h"
#include "create.h"
#include "libraries.h"
#include "messages.h"
#include "near.h"
#include "settings.h"
#include "stack.h"
#include "starts.h"
#include "thread.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

/* thrd_create's functions give an int. */
typedef int int_function(void *);
typedef int c11_create_function(thrd_t *, thrd_start_t, void *);

static create_function *_Atomic next;
static c11_create_function *_Atomic next_c11;
static atomic_bool is_refused;

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
    void *symbol = dlsym(RTLD_NEXT, "thrd_create");
    c11_create_function *c11;
    memcpy(&c11, &symbol, sizeof c11);
    atomic_store(&next_c11, c11);
    next_create();
    near_begin();
}

/* Whether the kernel will not do it, now or later. */
static bool is_refusal(int error)
{
    return error == EPERM || error == ENOSYS || error == EACCES;
}

void create_refused(int error)
{
    say_once(CANNOT_BIND, "cannot bind threads: %s. They run anywhere on the program's CPUs", strerror(error));
    if (is_refusal(error))
        atomic_store(&is_refused, true);
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
    if (start.returns_int)
        return (void *)(intptr_t)((int_function *)(void (*)(void))start.function)(start.argument);
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
    place->cpu = core_cpu(place->core);
    memset(mask, 0, sizeof *mask);
    cpus_add(mask, place->cpu);
}

static int create_helper(pthread_t *thread, const struct wish *wish, void *(*function)(void *), void *argument)
{
    pthread_attr_t attributes;
    struct kept kept;
    int error = attributes_make(&attributes, wish, &settings()->mask);
    if (error)
        return error;
    children_before(&kept);
    error = next_create()(thread, &attributes, function, argument);
    children_after(&kept);
    pthread_attr_destroy(&attributes);
    return error;
}

static void tell(const struct start *start, int core)
{
    say_if_verbose("process %d: a thread is on %s %d, node %d", (int)os_process(),
                   core == NO_CORE ? "any CPU, all cores are taken:" : "CPU",
                   core == NO_CORE ? settings()->count : core_cpu(core), start->place.node);
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
    if (owner == OPENMP_OF_GCC && wish->has_mask)
        thread_runtime_binds();
    /* The start is the thread's as soon as there is one. */
    struct start chosen = *start;
    int core = chosen.place.core;
    /* A runtime finds the mask that its creator has. */
    bool is_set = is_ours || wish->has_mask;
    int error = attributes_make(&attributes, wish, is_set ? &mask : NULL);
    if (error == 0) {
        error = near_create(next_create(), thread, &attributes, begin, start, &mask);
        pthread_attr_destroy(&attributes);
    }
    if (error == 0) {
        if (is_ours)
            tell(&chosen, core);
        return 0;
    }
    cores_release(core);
    start_free(start);
    if (error == EINVAL && core != NO_CORE && is_ours)
        say_once(CANNOT_BIND, "cannot create a thread on CPU %d, it is not bound", core_cpu(core));
    return error;
}

/* 0, or why it cannot be done our way. */
static int create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument,
                  bool returns_int)
{
    struct wish wish;
    void *address;
    memcpy(&address, &function, sizeof address);
    if (!settings()->active || atomic_load_explicit(&is_refused, memory_order_relaxed) ||
        !wish_of(attributes, &wish))
        return EINVAL;
    enum owner owner = owner_of(address);
    if (owner == BINDING_RUNTIME && !settings()->runtime_binds)
        owner = PROGRAM;
    if (owner == HELPERS)
        return wish.has_mask || returns_int ? EINVAL : create_helper(thread, &wish, function, argument);
    struct start *start = start_new(function, argument);
    if (!start)
        return EINVAL;
    start->returns_int = returns_int;
    start->stack_bytes = wish.stack_bytes;
    start->place.bottom = (uintptr_t)wish.stack;
    return create_placed(thread, &wish, owner, start);
}

/* Whether there is nothing that creating it without us could do better. */
static bool is_final(int error)
{
    return error == 0 || error == EAGAIN;
}

static void note_refusal(int error)
{
    if (is_refusal(error))
        create_refused(error);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                                          void *(*function)(void *), void *argument)
{
    thread_library_begin(environ);
    struct kept kept;
    if (!next_create())
        return EAGAIN;
    int error = create(thread, attributes, function, argument, false);
    if (is_final(error))
        return error;
    children_before(&kept);
    int plain = next_create()(thread, attributes, function, argument);
    children_after(&kept);
    /* It is the kernel's refusal of our wish if the program's is granted. */
    if (plain == 0)
        note_refusal(error);
    return plain;
}

__attribute__((visibility("default"))) int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    thread_library_begin(environ);
    struct kept kept;
    c11_create_function *create_c11 = atomic_load_explicit(&next_c11, memory_order_relaxed);
    if (!create_c11)
        return thrd_error;
    int error = create(thread, NULL, (void *(*)(void *))(void (*)(void))function, argument, true);
    if (error == 0)
        return thrd_success;
    children_before(&kept);
    int plain = create_c11(thread, function, argument);
    children_after(&kept);
    if (plain == thrd_success)
        note_refusal(error);
    return plain;
}
