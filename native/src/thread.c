/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "thread.h"
#include "create.h"
#include "messages.h"
#include "newer.h"
#include "ranks.h"
#include "settings.h"
#include "stack.h"
#include "starts.h"
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static __thread struct place mine __attribute__((tls_model("initial-exec"))) = {NO_CORE, -1, 0};

static pthread_key_t at_end;
static bool has_key;
/* Whether the main thread was looked at since this process began, and is bound by us. */
static atomic_bool main_seen, main_bound;
/* Somebody gave the program a part of its CPUs when it was started. */
static bool is_narrowed;

struct place *thread_place(void)
{
    return &mine;
}

static void ended(void *unused)
{
    (void)unused;
    thread_release();
}

/* A forked child has one thread, on the CPU of its parent's. */
static void in_child(void)
{
    bool was_bound = mine.core != NO_CORE;
    cores_forget();
    starts_forget();
    mine.core = NO_CORE;
    atomic_store(&main_seen, false);
    atomic_store(&main_bound, false);
    if (was_bound && !is_narrowed)
        os_set_mask(0, &settings()->mask);
}

/* What a child inherits that was spawned without this library's seeing it: one CPU, which a thread
 * of its parent runs on. A rank has what its launcher gave it. */
static void widen_inherited_mask(bool is_rank)
{
    struct cpus mask;
    int only;
    if (os_mask(0, &mask) || memcmp(&mask, &settings()->mask, sizeof mask) == 0)
        return;
    is_narrowed = true;
    if (is_rank || cpus_count(&mask, &only) != 1 || !cpus_within(&mask, &settings()->mask))
        return;
    if (cores_are_shared() ? cores_elsewhere(only) : os_has_threads(os_parent()))
        is_narrowed = os_set_mask(0, &settings()->mask) != 0;
}

/* The program was started with its first core's node preferred, so that what the loader touches is
 * there. Any other policy is somebody's wish. */
static void restore_policy(void)
{
    int node = node_of_cpu(settings()->order[0]);
    struct policy started = policy_of_node(MPOL_PREFERRED, node), now;
    if (node < 0 || os_policy(&now) || memcmp(&now, &started, sizeof now))
        return;
    int error = os_set_policy(&settings()->memory);
    if (error)
        say_once(NO_POLICY, "cannot set the memory policy of NUMA_MEMORY: %s", strerror(error));
}

static void begin(char **environment)
{
    settings_read(environment);
    if (!settings()->active)
        return;
    newer_begin();
    create_begin();
    cores_begin();
    stack_begin();
    has_key = pthread_key_create(&at_end, ended) == 0;
    if (!has_key)
        say_once(NO_KEY, "no key for thread-specific data is left. Cores of threads that end stay taken");
    pthread_atfork(NULL, NULL, in_child);
    restore_policy();
    widen_inherited_mask(ranks_begin(environment));
}

void thread_library_begin(char **environment)
{
    enum { NOT_YET, NOW, DONE };
    static atomic_int state;
    int expected = NOT_YET;
    if (atomic_load_explicit(&state, memory_order_acquire) == DONE)
        return;
    if (atomic_compare_exchange_strong(&state, &expected, NOW)) {
        begin(environment);
        atomic_store_explicit(&state, DONE, memory_order_release);
    }
    /* Another thread that comes now is created as if the library were not there. */
}

/* Before the libraries that the program uses: some of them create threads, or look at the mask,
 * when they are loaded. */
__attribute__((constructor)) static void loaded(int count, char **words, char **environment)
{
    (void)count;
    (void)words;
    thread_library_begin(environment ? environment : environ);
}

void thread_begin(const struct place *place)
{
    mine = *place;
    if (mine.core != NO_CORE && has_key)
        pthread_setspecific(at_end, &mine);
}

void thread_keep_stack(const struct policy *policy)
{
    if (policy->mode != MPOL_DEFAULT && policy->mode != MPOL_LOCAL && policy->mode != MPOL_BIND)
        stack_prefer(mine.node, mine.bottom);
}

void thread_release(void)
{
    int core = mine.core;
    mine.core = NO_CORE;
    cores_release(core);
}

/* The calling thread is bound to a CPU and has this core, or NO_CORE: its pages are brought. */
static void settle(int core, int cpu)
{
    struct place place = {core, node_of_cpu(cpu), mine.bottom};
    struct policy policy;
    thread_begin(&place);
    if (mine.node < 0)
        return;
    if (os_policy(&policy) == 0) {
        if (policy_forbids(&policy, mine.node))
            return;
        thread_keep_stack(&policy);
    }
    stack_bring(mine.node, mine.bottom, STACK_USED);
}

int thread_bind(int core)
{
    struct cpus one = {0};
    cpus_add(&one, core_cpu(core));
    int error = os_set_mask(0, &one);
    if (error == 0)
        settle(core, core_cpu(core));
    return error;
}

void thread_bind_main(void)
{
    struct cpus mask;
    int only;
    if (!os_is_main_thread() || settings()->main_free || atomic_exchange(&main_seen, true))
        return;
    if (os_mask(0, &mask) || memcmp(&mask, &settings()->mask, sizeof mask)) {
        if (cpus_count(&mask, &only) == 1)
            settle(cores_take_cpu(only), only);
        return;
    }
    int core = cores_take();
    int error = core == NO_CORE ? 0 : thread_bind(core);
    if (error) {
        cores_release(core);
        say_once(CANNOT_BIND, "cannot bind the main thread to CPU %d: %s", core_cpu(core), strerror(error));
    } else if (core != NO_CORE) {
        atomic_store(&main_bound, true);
        say_if_verbose("process %d: the main thread is on CPU %d, node %d", (int)os_process(), core_cpu(core),
                       mine.node);
    }
}

void thread_follow_main(void)
{
    struct cpus mask;
    int only;
    if (!atomic_load_explicit(&main_seen, memory_order_relaxed) && os_is_main_thread() &&
        os_mask(0, &mask) == 0 && cpus_count(&mask, &only) == 1)
        thread_bind_main();
}

void thread_free_main(void)
{
    if (!os_is_main_thread() || !atomic_exchange(&main_bound, false))
        return;
    thread_release();
    os_set_mask(0, &settings()->mask);
}
