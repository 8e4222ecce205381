/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pthread_create and thrd_create in place of the C library's. */
#define _GNU_SOURCE
#include "attributes.h"
#include "base/begin.h"
#include "base/next.h"
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

static NEXT_DEFINE(pthread_create)
static NEXT_DEFINE(thrd_create)
/* A library that is loaded before this one starts threads by a function of its own: libnumaexplain tells the program's. */
typedef void *function_of(void *function, void *argument);
static function_of *_Atomic behind;
static atomic_bool is_refused;

struct records starts = {.bytes = sizeof(struct start)};

void create_begin(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "numaexplain_function_of");
    function_of *found;
    memcpy(&found, &symbol, sizeof found);
    atomic_store(&behind, found);
    NEXT_LOOK_UP(pthread_create)
    NEXT_LOOK_UP(thrd_create)
    near_begin();
}

/* Whether the error is permanent. */
static bool is_refusal(int error)
{
    return error == EPERM || error == ENOSYS || error == EACCES;
}

void create_refused(int error)
{
    warn_once(CANNOT_BIND, "cannot bind threads: %s. They run anywhere on the program's CPUs", strerror(error));
    if (is_refusal(error))
        atomic_store(&is_refused, true);
}

/* The first function of every placed thread. */
static void *thread_main(void *argument)
{
    struct start *start = argument;
    struct task task = start->record.task;
    bool is_given = start->place.bottom;
    if (!is_given)
        start->place.bottom = stack_top() - start->stack_bytes;
    thread_begin(&start->place);
    if (start->has_policy) {
        /* The thread inherited the policy that the parent had only while it created this stack. */
        os_keep_policy(&start->policy);
        thread_keep_stack(&start->policy);
    }
    /* The caller may have touched its own memory on any node. */
    stack_move(start->place.node, start->place.bottom, is_given ? start->stack_bytes : STACK_LEFT);
    record_free(start);
    return task_run(task);
}

/* Threads beside the main one begin teams of GCC's OpenMP. */
static atomic_bool has_several_teams;

void create_has_several_teams(void)
{
    atomic_store(&has_several_teams, true);
}

void create_forget(void)
{
    atomic_store(&has_several_teams, false);
}

/* The thread is bound to this core. */
static void assign_core(int core, struct place *place, struct cpus *mask)
{
    place->core = core;
    place->cpu = core_cpu(core);
    place->node = node_of_cpu(place->cpu);
    memset(mask, 0, sizeof *mask);
    cpus_add(mask, place->cpu);
}

/* GCC's OpenMP has the same places for each team. Where several threads begin teams, a thread whose place is the core of another one gets
 * a free core near it; without one it may run anywhere. The team of the main thread alone may just be larger than the plan, and shares
 * its places, or those of threads that begin no team. */
static bool assign_instead(struct place *place, struct cpus *mask)
{
    if (!atomic_load(&has_several_teams) && os_is_main_thread())
        return false;
    int core = cores_take_on(place->node);
    if (core != NO_CORE) {
        assign_core(core, place, mask);
    } else {
        *mask = settings()->mask;
        place->node = -1;
    }
    return true;
}

/* The mask is requested. Whether it is another one now. */
static bool assign_requested(enum owner owner, struct place *place, struct cpus *mask)
{
    int only;
    /* GCC's OpenMP has bound the main thread before. */
    thread_follow_main();
    place->node = node_of_cpus(mask);
    if (cpus_count(mask, &only) != 1)
        return false;
    place->core = cores_take_cpu(only);
    return place->core == NO_CORE && owner == OPENMP_OF_GCC && core_of_cpu(only) != NO_CORE && assign_instead(place, mask);
}

/* Determines the thread's mask, and its core and node in the start. */
static void assign_place(const struct request *request, enum owner owner, struct start *start, struct cpus *mask,
                         bool *is_assigned)
{
    struct place *place = &start->place;
    if (request->has_mask) {
        *mask = request->mask;
        *is_assigned = assign_requested(owner, place, mask);
        return;
    }
    *is_assigned = true;
    *mask = settings()->mask;
    thread_bind_main();
    int core = cores_take();
    if (core != NO_CORE)
        assign_core(core, place, mask);
}

static int create_helper(pthread_t *thread, const struct request *request, struct task task)
{
    pthread_attr_t attributes;
    struct saved_state saved;
    int error = attributes_copy(&attributes, request, &settings()->mask);
    if (error)
        return error;
    children_before(&saved);
    error = NEXT(pthread_create)(thread, &attributes, task.function, task.argument);
    children_after(&saved);
    pthread_attr_destroy(&attributes);
    return error;
}

static void report(const struct start *start, int core)
{
    print_if_verbose("process %d: a thread is on %s %d, node %d", (int)os_process(),
                   core == NO_CORE ? "any CPU, all cores are taken:" : "CPU",
                   core == NO_CORE ? settings()->count : core_cpu(core), start->place.node);
}

static int create_placed(pthread_t *thread, const struct request *request, enum owner owner, struct start *start)
{
    struct cpus mask;
    pthread_attr_t attributes;
    bool is_assigned = false;
    if (owner == BINDING_RUNTIME && !request->has_mask)
        mask = settings()->mask;
    else
        assign_place(request, owner, start, &mask, &is_assigned);
    if (owner == OPENMP_OF_GCC && request->has_mask)
        thread_runtime_binds();
    /* The start belongs to the thread as soon as it exists. */
    struct start copy = *start;
    int core = copy.place.core;
    /* A runtime's thread inherits the mask of its creator. */
    bool is_set = is_assigned || request->has_mask;
    int error = attributes_copy(&attributes, request, is_set ? &mask : NULL);
    if (error == 0) {
        error = near_create(NEXT(pthread_create), thread, &attributes, thread_main, start, &mask);
        pthread_attr_destroy(&attributes);
    }
    if (error == 0) {
        if (is_assigned)
            report(&copy, core);
        return 0;
    }
    cores_release(core);
    record_free(start);
    if (error == EINVAL && core != NO_CORE && is_assigned)
        warn_once(CANNOT_BIND, "cannot create a thread on CPU %d, it is not bound", core_cpu(core));
    return error;
}

/* Returns 0, or why the thread cannot be placed. */
static int create(pthread_t *thread, const pthread_attr_t *attributes, struct task task)
{
    struct request request;
    void *address;
    memcpy(&address, &task.function, sizeof address);
    if (atomic_load_explicit(&behind, memory_order_relaxed))
        address = atomic_load_explicit(&behind, memory_order_relaxed)(address, task.argument);
    if (!settings()->active || atomic_load_explicit(&is_refused, memory_order_relaxed) ||
        !request_of(attributes, &request))
        return EINVAL;
    enum owner owner = owner_of(address);
    if (owner == BINDING_RUNTIME && !settings()->runtime_binds)
        owner = PROGRAM;
    if (owner == HELPERS)
        return request.has_mask || task.returns_int ? EINVAL : create_helper(thread, &request, task);
    struct start *start = record_new(&starts, task);
    if (!start)
        return EINVAL;
    start->place = (struct place)NO_PLACE;
    start->stack_bytes = request.stack_bytes;
    start->place.bottom = (uintptr_t)request.stack;
    return create_placed(thread, &request, owner, start);
}

/* Whether creating the thread without placement would give the same result. */
static bool is_final(int error)
{
    return error == 0 || error == EAGAIN;
}

static void note_refusal(int error)
{
    if (is_refusal(error))
        create_refused(error);
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument)
{
    library_begin(environ);
    struct saved_state saved;
    if (!NEXT(pthread_create))
        return EAGAIN;
    int error = create(thread, attributes, (struct task){function, argument, false});
    if (is_final(error))
        return error;
    children_before(&saved);
    int plain = NEXT(pthread_create)(thread, attributes, function, argument);
    children_after(&saved);
    /* The kernel refused our request if it accepts the program's. */
    if (plain == 0)
        note_refusal(error);
    return plain;
}

PUBLIC int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    library_begin(environ);
    struct saved_state saved;
    if (!NEXT(thrd_create))
        return thrd_error;
    int error = create(thread, NULL, (struct task){(void *(*)(void *))(void (*)(void))function, argument, true});
    if (error == 0)
        return thrd_success;
    children_before(&saved);
    int plain = NEXT(thrd_create)(thread, function, argument);
    children_after(&saved);
    if (plain == thrd_success)
        note_refusal(error);
    return plain;
}
