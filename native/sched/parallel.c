/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parallel regions in place of libgomp's: the same ones, whose members run the program's function with a context. */
#include "base/begin.h"
#include "base/next.h"
#include "gomp.h"
#include "nodes.h"
#include "regions.h"
#include "schedules.h"
#include "settings.h"

#define CALLER ((uintptr_t)__builtin_return_address(0))
#define REAL(runtime, name) ((__typeof__(&name))runtime_function(runtime, F_##name))

static void begin_child(void)
{
    statistics_begin_child();
    runtimes_begin_child();
}

void library_prepare(char **environment)
{
    nodes_read();
    settings_read(environment);
    library_follow(begin_child);
}

/* Whether the region may have several members, whose loops can be ours; then there is a team for it. */
static bool begin_region(struct region *region, uintptr_t caller, unsigned threads)
{
    static const enum function NEEDED[] = {F_GOMP_barrier, F_omp_get_level, F_omp_get_thread_num, F_omp_get_num_threads,
                                           F_omp_get_max_threads};
    region->module = *module_of(caller);
    const struct runtime *runtime = region->module.runtime;
    if (settings()->is_off)
        return false;
    for (unsigned i = 0; i < sizeof NEEDED / sizeof *NEEDED; i++)
        if (!runtime->functions[NEEDED[i]])
            return false;
    unsigned bound = threads ? threads : (unsigned)REAL(runtime, omp_get_max_threads)();
    return bound > 1 && region_take_team(region, bound);
}

static void run_region(struct region *region, unsigned threads, unsigned flags)
{
    REAL(region->module.runtime, GOMP_parallel)(region_run, region, threads, flags);
    region_give_team(region);
}

PUBLIC void GOMP_parallel(body *function, void *data, unsigned threads, unsigned flags)
{
    struct region region = {.function = function, .data = data};
    if (begin_region(&region, CALLER, threads))
        run_region(&region, threads, flags);
    else
        REAL(region.module.runtime, GOMP_parallel)(function, data, threads, flags);
}

PUBLIC unsigned GOMP_parallel_reductions(body *function, void *data, unsigned threads, unsigned flags)
{
    struct region region = {.function = function, .data = data, .reductions = *(void **)data};
    bool is_ours = begin_region(&region, CALLER, threads);
    __typeof__(&GOMP_parallel_reductions) real = REAL(region.module.runtime, GOMP_parallel_reductions);
    if (!is_ours)
        return real(function, data, threads, flags);
    unsigned members = real(region_run, &region, threads, flags);
    region_give_team(&region);
    return members;
}

/* A region that is one loop: the loop is begun where the members begin. */
static bool begin_loop_region(struct region *region, uintptr_t caller, unsigned threads, struct span span)
{
    region->has_loop = true;
    region->span = span;
    return span.step != 0 && begin_region(region, caller, threads);
}

#define DEFINE_PARALLEL_LOOP(name)                                                                                     \
    PUBLIC void GOMP_parallel_loop_##name(body *function, void *data, unsigned threads, long start, long end,         \
                                          long step, long chunk, unsigned flags)                                       \
    {                                                                                                                  \
        struct region region = {.function = function, .data = data};                                                   \
        struct span span = step ? span_of_long(start, end, step, chunk) : (struct span){0};                            \
        if (begin_loop_region(&region, CALLER, threads, span))                                                         \
            run_region(&region, threads, flags);                                                                       \
        else                                                                                                           \
            REAL(module_of(CALLER)->runtime, GOMP_parallel_loop_##name)                                                \
            (function, data, threads, start, end, step, chunk, flags);                                                 \
    }
DEFINE_PARALLEL_LOOP(nonmonotonic_dynamic)
DEFINE_PARALLEL_LOOP(nonmonotonic_guided)

#define DEFINE_PARALLEL_RUNTIME_LOOP(name)                                                                             \
    PUBLIC void GOMP_parallel_loop_##name(body *function, void *data, unsigned threads, long start, long end,         \
                                          long step, unsigned flags)                                                   \
    {                                                                                                                  \
        struct region region = {.function = function, .data = data};                                                   \
        const struct runtime *runtime = module_of(CALLER)->runtime;                                                    \
        long chunk = 1;                                                                                                \
        bool is_free = step && schedule_of_runtime(runtime, &chunk);                                                   \
        struct span span = is_free ? span_of_long(start, end, step, chunk) : (struct span){0};                         \
        if (begin_loop_region(&region, CALLER, threads, span))                                                         \
            run_region(&region, threads, flags);                                                                       \
        else                                                                                                           \
            REAL(runtime, GOMP_parallel_loop_##name)(function, data, threads, start, end, step, flags);                \
    }
DEFINE_PARALLEL_RUNTIME_LOOP(nonmonotonic_runtime)
DEFINE_PARALLEL_RUNTIME_LOOP(maybe_nonmonotonic_runtime)

/* Old callers run the first member's part themselves, between the start and GOMP_parallel_end. */
static void start_region(struct region *region, unsigned threads)
{
    region->is_old = true;
    struct region *kept = region_of_team(region);
    REAL(region->module.runtime, GOMP_parallel_start)(region_run, kept, threads);
    context_enter(region_first(kept), kept);
}

PUBLIC void GOMP_parallel_start(body *function, void *data, unsigned threads)
{
    struct region region = {.function = function, .data = data};
    if (begin_region(&region, CALLER, threads))
        start_region(&region, threads);
    else
        REAL(region.module.runtime, GOMP_parallel_start)(function, data, threads);
}

#define DEFINE_OLD_PARALLEL_LOOP(name)                                                                                 \
    PUBLIC void GOMP_parallel_loop_##name##_start(body *function, void *data, unsigned threads, long start, long end, \
                                                  long step, long chunk)                                               \
    {                                                                                                                  \
        struct region region = {.function = function, .data = data};                                                   \
        struct span span = step ? span_of_long(start, end, step, chunk) : (struct span){0};                            \
        if (begin_loop_region(&region, CALLER, threads, span))                                                         \
            start_region(&region, threads);                                                                            \
        else                                                                                                           \
            REAL(module_of(CALLER)->runtime, GOMP_parallel_loop_##name##_start)                                        \
            (function, data, threads, start, end, step, chunk);                                                        \
    }
DEFINE_OLD_PARALLEL_LOOP(dynamic)
DEFINE_OLD_PARALLEL_LOOP(guided)

PUBLIC void GOMP_parallel_loop_runtime_start(body *function, void *data, unsigned threads, long start, long end, long step)
{
    struct region region = {.function = function, .data = data};
    const struct runtime *runtime = module_of(CALLER)->runtime;
    long chunk = 1;
    bool is_free = step && schedule_of_runtime(runtime, &chunk);
    struct span span = is_free ? span_of_long(start, end, step, chunk) : (struct span){0};
    if (begin_loop_region(&region, CALLER, threads, span))
        start_region(&region, threads);
    else
        REAL(runtime, GOMP_parallel_loop_runtime_start)(function, data, threads, start, end, step);
}

PUBLIC void GOMP_parallel_end(void)
{
    struct context *context = current;
    if (!context || !context->region->is_old || !context_is_here(context, CALLER)) {
        REAL(module_of(CALLER)->runtime, GOMP_parallel_end)();
        return;
    }
    struct region *region = context->region;
    context_leave(context);
    REAL(region->module.runtime, GOMP_parallel_end)();
    region_give_team(region);
}
