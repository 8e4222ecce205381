/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "thread.h"
#include "children.h"
#include "create.h"
#include "messages.h"
#include "near.h"
#include "newer.h"
#include "ranks.h"
#include "settings.h"
#include "processes.h"
#include "stack.h"
#include "starts.h"
#include <linux/mempolicy.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static __thread struct place mine __attribute__((tls_model("initial-exec"))) = NO_PLACE;
/* The program gave it a mask. */
static __thread bool has_wish __attribute__((tls_model("initial-exec")));

static pthread_key_t at_end;
static bool has_key;
/* Whether the main thread was looked at since this process began, and is bound by us. */
static atomic_bool main_seen, main_bound;
/* Its memory is preferred on the first core's node, as the launcher started it. */
static atomic_bool prefers_start;
/* The first place is this process's: it was launched, or is a rank with CPUs of its own. */
static bool begins_first;
/* With which the process began: the whole one, or what somebody gave it. */
static struct cpus mask_of_start;
static atomic_bool runtime_binds;
/* The process that the library began in. */
static pid_t process;

struct place *thread_place(void)
{
    return &mine;
}

static void ended(void *unused)
{
    (void)unused;
    thread_release();
    near_stack_left();
}

bool thread_is_given(int cpu)
{
    if (has_wish)
        return false;
    return cpu == mine.cpu || (atomic_load(&runtime_binds) && core_of_cpu(cpu) != NO_CORE);
}

const struct cpus *thread_mask_of_start(void)
{
    return &mask_of_start;
}

void thread_was_bound(void)
{
    struct cpus mask;
    int only;
    /* What it was given: many programs save their mask and restore it. */
    has_wish = os_mask(0, &mask) == 0 && (cpus_count(&mask, &only) != 1 || only != mine.cpu);
}

void thread_runtime_binds(void)
{
    atomic_store(&runtime_binds, true);
}

/* Whether the policy is still that of the start. Any other one is somebody's wish. */
static bool has_policy_of_start(void)
{
    int node = node_of_cpu(settings()->order[0]);
    struct policy started = policy_of_node(MPOL_PREFERRED, node), now;
    return node >= 0 && os_policy(&now) == 0 && memcmp(&now, &started, sizeof now) == 0;
}

bool thread_has_policy_of_start(void)
{
    return atomic_load_explicit(&prefers_start, memory_order_relaxed) && os_is_main_thread() &&
           has_policy_of_start();
}

bool thread_is_of_process(void)
{
    return os_process() == process;
}

void thread_begin_child(void)
{
    children_begin();
    process = os_process();
    cores_forget();
    starts_forget();
    near_forget();
    mine.core = NO_CORE;
    mine.cpu = NO_CPU;
    begins_first = false;
    atomic_store(&main_seen, false);
    atomic_store(&main_bound, false);
    atomic_store(&prefers_start, false);
}

/* The main thread goes to its first core, from where it may run anywhere. */
static void visit_first_core(void)
{
    struct cpus mask, one = {0};
    if (settings()->main_free || os_mask(0, &mask) || memcmp(&mask, &settings()->mask, sizeof mask))
        return;
    cpus_add(&one, settings()->order[0]);
    if (os_set_mask(0, &one) == 0)
        os_set_mask(0, &mask);
}

static void restore_policy(void)
{
    int error = os_set_policy(&settings()->memory);
    if (error)
        say_once(NO_POLICY, "cannot set the memory policy of NUMA_MEMORY: %s", strerror(error));
}

/* The program was started with its first core's node preferred, so that what the loader touches is
 * there. What its main thread touches is to be there too, until it is bound; unless the program's
 * memory has a policy. */
static void begin_first(void)
{
    bool has_policy = has_policy_of_start();
    /* Where policies are refused, the launcher says who is first. */
    if (!has_policy && settings()->process != os_process())
        return;
    begins_first = true;
    if (has_policy && (settings()->main_free || !policy_is_local(&settings()->memory)))
        restore_policy();
    else if (has_policy)
        atomic_store(&prefers_start, true);
    visit_first_core();
}

static void begin(char **environment)
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
        say_once(NO_KEY, "no key for thread-specific data is left. Cores of threads that end stay taken");
    process = os_process();
    pthread_atfork(NULL, NULL, thread_begin_child);
    begin_first();
    begins_first |= ranks_begin(environment);
    if (os_mask(0, &mask_of_start))
        mask_of_start = settings()->mask;
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
    if (!policy_is_local(policy) && policy->mode != MPOL_BIND)
        stack_prefer(mine.node, mine.bottom);
}

void thread_release(void)
{
    int core = mine.core;
    mine.core = NO_CORE;
    mine.cpu = NO_CPU;
    cores_release(core);
}

/* The calling thread is bound to a CPU and has this core, or NO_CORE: its pages are brought. */
static void settle(int core, int cpu)
{
    struct place place = {core, mine.cpu, node_of_cpu(cpu), mine.bottom};
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
    if (error)
        return error;
    mine.cpu = core_cpu(core);
    has_wish = false;
    settle(core, mine.cpu);
    return 0;
}

/* From now on the main thread's memory is as the program's: it is bound, or other threads say where
 * memory is needed. */
static void leave_start(void)
{
    if (atomic_exchange(&prefers_start, false) && has_policy_of_start())
        restore_policy();
}

void thread_bind_main(void)
{
    struct cpus mask;
    int only;
    if (!os_is_main_thread())
        return;
    leave_start();
    if (settings()->main_free || atomic_exchange(&main_seen, true))
        return;
    if (os_mask(0, &mask) || memcmp(&mask, &settings()->mask, sizeof mask)) {
        if (cpus_count(&mask, &only) == 1)
            settle(cores_take_cpu(only), only);
        return;
    }
    int core = begins_first ? cores_take() : cores_take_on(node_of_cpu(os_cpu()));
    int error = core == NO_CORE ? 0 : thread_bind(core);
    if (error) {
        cores_release(core);
        create_refused(error);
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
