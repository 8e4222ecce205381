/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "thread.h"
#include "base/begin.h"
#include "base/newer.h"
#include "children.h"
#include "create.h"
#include "messages.h"
#include "near.h"
#include "ranks.h"
#include "settings.h"
#include "processes.h"
#include "stack.h"
#include "starts.h"
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static __thread struct place own __attribute__((tls_model("initial-exec"))) = NO_PLACE;
/* The program bound it. */
static __thread bool is_bound_by_program __attribute__((tls_model("initial-exec")));

static pthread_key_t at_end;
static bool has_key;
/* The main thread was checked since this process started; it is bound by this library. */
static atomic_bool main_checked, main_bound;
/* The main thread's policy still prefers the first core's node, as the launcher set it. */
static atomic_bool has_start_policy;
/* The first place belongs to this process: it was launched, or is a rank with its own CPUs. */
static bool has_first_place;
/* The mask with which the process started. */
static struct cpus initial_mask;
static atomic_bool runtime_binds;

struct place *thread_place(void)
{
    return &own;
}

static void ended(void *unused)
{
    (void)unused;
    thread_release();
    near_stack_cached();
}

bool thread_is_given(int cpu)
{
    if (is_bound_by_program)
        return false;
    return cpu == own.cpu || (atomic_load(&runtime_binds) && core_of_cpu(cpu) != NO_CORE);
}

const struct cpus *thread_initial_mask(void)
{
    return &initial_mask;
}

void thread_was_bound(void)
{
    struct cpus mask;
    int only;
    /* Setting the mask that it had is not a request: many programs save and restore their mask. */
    is_bound_by_program = os_mask(0, &mask) == 0 && (cpus_count(&mask, &only) != 1 || only != own.cpu);
}

void thread_runtime_binds(void)
{
    atomic_store(&runtime_binds, true);
}

/* Whether the policy is still the initial one. The program has set any other. */
static bool has_initial_policy(void)
{
    int node = node_of_cpu(settings()->order[0]);
    struct policy started = policy_of_node(MPOL_PREFERRED, node), now;
    return node >= 0 && os_policy(&now) == 0 && memcmp(&now, &started, sizeof now) == 0;
}

bool thread_has_initial_policy(void)
{
    return atomic_load_explicit(&has_start_policy, memory_order_relaxed) && os_is_main_thread() &&
           has_initial_policy();
}

static void begin_child(void)
{
    children_begin();
    cores_forget();
    create_forget();
    records_forget(&starts);
    near_forget();
    own.core = NO_CORE;
    own.cpu = NO_CPU;
    has_first_place = false;
    atomic_store(&main_checked, false);
    atomic_store(&main_bound, false);
    atomic_store(&has_start_policy, false);
}

/* Moves the main thread to its first core; it may run anywhere afterwards. */
static void visit_first_core(void)
{
    struct cpus mask, one = {0};
    if (settings()->main_unbound || os_mask(0, &mask) || memcmp(&mask, &settings()->mask, sizeof mask))
        return;
    cpus_add(&one, settings()->order[0]);
    if (os_set_mask(0, &one) == 0)
        os_set_mask(0, &mask);
}

static void restore_policy(void)
{
    int error = os_keep_policy(&settings()->memory);
    if (error)
        warn_once(NO_POLICY, "cannot set the memory policy of NUMA_MEMORY: %s", strerror(error));
}

/* The launcher started the program with its first core's node preferred, so that the loader's memory is
 * there. That of its main thread should be there too until it is bound, unless the program's memory has a
 * policy. */
static void start_on_first_core(void)
{
    bool has_policy = has_initial_policy();
    /* If policies are refused, NUMA_PROCESS identifies the started program. */
    if (!has_policy && settings()->process != os_process())
        return;
    has_first_place = true;
    if (has_policy && (settings()->main_unbound || !policy_is_local(&settings()->memory)))
        restore_policy();
    else if (has_policy)
        atomic_store(&has_start_policy, true);
    visit_first_core();
}

void library_prepare(char **environment)
{
    settings_read(environment);
    if (!settings()->active)
        return;
    newer_begin();
    create_begin();
    processes_begin();
    cores_begin();
    stack_begin();
    has_key = pthread_key_create(&at_end, ended) == 0;
    if (!has_key)
        warn_once(NO_KEY, "no key for thread-specific data is left. Cores of threads that end stay taken");
    library_follow(begin_child);
    start_on_first_core();
    has_first_place |= ranks_begin(environment);
    if (os_mask(0, &initial_mask))
        initial_mask = settings()->mask;
}

void thread_begin(const struct place *place)
{
    own = *place;
    if (own.core != NO_CORE && has_key)
        pthread_setspecific(at_end, &own);
}

void thread_keep_stack(const struct policy *policy)
{
    if (!policy_is_local(policy) && policy->mode != MPOL_BIND)
        stack_prefer(own.node, own.bottom);
}

void thread_release(void)
{
    int core = own.core;
    own.core = NO_CORE;
    own.cpu = NO_CPU;
    cores_release(core);
}

/* After the calling thread was bound to a CPU, with this core or NO_CORE: moves its pages. */
static void settle(int core, int cpu)
{
    struct place place = {core, own.cpu, node_of_cpu(cpu), own.bottom};
    struct policy policy;
    thread_begin(&place);
    if (own.node < 0)
        return;
    if (os_policy(&policy) == 0) {
        if (policy_forbids(&policy, own.node))
            return;
        thread_keep_stack(&policy);
    }
    stack_move(own.node, own.bottom, STACK_USED);
}

int thread_bind(int core)
{
    struct cpus one = {0};
    cpus_add(&one, core_cpu(core));
    int error = os_set_mask(0, &one);
    if (error)
        return error;
    own.cpu = core_cpu(core);
    is_bound_by_program = false;
    settle(core, own.cpu);
    return 0;
}

/* Ends the initial policy of the main thread: it is bound, or other threads determine where memory is
 * needed. */
static void end_start_policy(void)
{
    if (atomic_exchange(&has_start_policy, false) && has_initial_policy())
        restore_policy();
}

void thread_bind_main(void)
{
    struct cpus mask;
    int only;
    if (!os_is_main_thread())
        return;
    end_start_policy();
    if (settings()->main_unbound || atomic_exchange(&main_checked, true))
        return;
    if (os_mask(0, &mask) || memcmp(&mask, &settings()->mask, sizeof mask)) {
        if (cpus_count(&mask, &only) == 1)
            settle(cores_take_cpu(only), only);
        return;
    }
    int core = has_first_place ? cores_take() : cores_take_on(node_of_cpu(os_cpu()));
    int error = core == NO_CORE ? 0 : thread_bind(core);
    if (error) {
        cores_release(core);
        create_refused(error);
    } else if (core != NO_CORE) {
        atomic_store(&main_bound, true);
        print_if_verbose("process %d: the main thread is on CPU %d, node %d", (int)os_process(), core_cpu(core),
                       own.node);
    }
}

void thread_follow_main(void)
{
    struct cpus mask;
    int only;
    if (!atomic_load_explicit(&main_checked, memory_order_relaxed) && os_is_main_thread() &&
        os_mask(0, &mask) == 0 && cpus_count(&mask, &only) == 1)
        thread_bind_main();
}

void thread_unbind(void)
{
    if (os_is_main_thread() ? !atomic_exchange(&main_bound, false) : own.cpu == NO_CPU)
        return;
    thread_release();
    os_set_mask(0, &settings()->mask);
}
