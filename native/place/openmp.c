/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LLVM's and Intel's OpenMP bind each thread after it has started, by a raw system call. Their interface
 * for tools reports when a thread begins a task: by then it is bound, and its pages are moved to its node. */
#define _GNU_SOURCE
#include "base/next.h"
#include "settings.h"
#include "stack.h"
#include "thread.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* From the OpenMP specification, chapter "OMPT interface". */
typedef void (*ompt_function)(void);
typedef ompt_function (*ompt_lookup)(const char *name);
typedef int (*ompt_set_callback)(int event, ompt_function callback);
union ompt_data {
    uint64_t value;
    void *pointer;
};
struct ompt_start_result {
    int (*initialize)(ompt_lookup lookup, int device, union ompt_data *tool);
    void (*finalize)(union ompt_data *tool);
    union ompt_data tool;
};
enum { IMPLICIT_TASK = 7, SCOPE_BEGIN = 1 };

/* A runtime that is not asked to bind gives its threads the mask that it found at first, which unbinds
 * them. */
static void bind_again(const struct place *place)
{
    struct cpus mask;
    if (place->core != NO_CORE && os_mask(0, &mask) == 0 &&
        memcmp(&mask, &settings()->mask, sizeof mask) == 0)
        thread_bind(place->core);
}

/* Called for each thread and parallel region; usually it only reads the CPU. */
static void task(int endpoint, union ompt_data *parallel, union ompt_data *data, unsigned threads,
                 unsigned index, int flags)
{
    (void)parallel;
    (void)data;
    (void)threads;
    (void)index;
    (void)flags;
    struct place *place = thread_place();
    if (endpoint != SCOPE_BEGIN)
        return;
    if (!settings()->runtime_binds) {
        bind_again(place);
        return;
    }
    int here = node_of_cpu(os_cpu());
    if (place->node >= 0 && place->node == here)
        return;
    struct cpus mask;
    if (os_mask(0, &mask))
        return;
    int node = node_of_cpus(&mask);
    if (node < 0 || node == place->node)
        return;
    place->node = node;
    stack_move(node, place->bottom, STACK_USED);
}

static int initialize(ompt_lookup lookup, int device, union ompt_data *tool)
{
    (void)device;
    (void)tool;
    ompt_function found = lookup("ompt_set_callback");
    ompt_set_callback set;
    memcpy(&set, &found, sizeof set);
    if (settings()->runtime_binds)
        thread_runtime_binds();
    return set && set(IMPLICIT_TASK, (ompt_function)task) > 0;
}

static void finalize(union ompt_data *tool)
{
    (void)tool;
}

/* The runtime calls this before it reads the mask. */
struct ompt_start_result *ompt_start_tool(unsigned version, const char *runtime);
static NEXT_DEFINE(ompt_start_tool)

PUBLIC struct ompt_start_result *ompt_start_tool(unsigned version, const char *runtime)
{
    static struct ompt_start_result result = {initialize, finalize, {0}};
    __typeof__(&ompt_start_tool) other = NEXT(ompt_start_tool);
    const char *libraries = getenv("OMP_TOOL_LIBRARIES");
    /* Another tool has precedence; there can be only one. */
    struct ompt_start_result *theirs = other ? other(version, runtime) : NULL;
    if (settings()->active)
        thread_unbind();
    if (theirs || !settings()->active || (libraries && *libraries))
        return theirs;
    return &result;
}
