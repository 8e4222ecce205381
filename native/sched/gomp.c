/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loops in place of libgomp's. Which loop a call is about says the calling thread's active loop, never the function that is
 * called: a loop that we did not begin goes on in libgomp. No loop of ours is known to libgomp; its barrier ends it. */
#include "gomp.h"
#include "base/next.h"
#include "nodes.h"
#include "regions.h"
#include "schedules.h"
#include "settings.h"

#define CALLER ((uintptr_t)__builtin_return_address(0))
#define REAL(runtime, name) ((__typeof__(&name))runtime_function(runtime, F_##name))
#define RARELY(condition) __builtin_expect(!!(condition), 0)

static const struct runtime *runtime_at(uintptr_t caller)
{
    return module_of(caller)->runtime;
}

/* The context whose loop a call is about, if it is in one. */
static inline struct context *active_at(uintptr_t caller)
{
    struct context *context = current;
    return context && context->is_active && context_is_here(context, caller) ? context : NULL;
}

/* The context in which this loop runs with shares. All members of a team come to the same answer: they are at the same loop. */
static struct context *free_at(uintptr_t caller, enum schedule schedule, long step, long *chunk)
{
    struct context *context = current;
    if (!context || !context->has_team || step == 0 || !schedule_is_free(schedule, context->region->is_old) ||
        !context_is_here(context, caller))
        return NULL;
    if (schedule >= S_runtime && !schedule_of_runtime(context->module.runtime, chunk))
        return NULL;
    /* No compiler begins a loop in a loop. */
    if (RARELY(context->is_active))
        context_finish(context);
    return context;
}

static bool next_of_long(struct context *context, long *from, long *to)
{
    uint64_t first, end;
    if (!context_next(context, &first, &end))
        return false;
    *from = (long)first;
    *to = (long)end;
    return true;
}

static bool next_of_ull(struct context *context, ull *from, ull *to)
{
    uint64_t first, end;
    if (!context_next(context, &first, &end))
        return false;
    *from = first;
    *to = end;
    return true;
}

static bool begin_long(struct context *context, long start, long end, long step, long chunk, long *from, long *to)
{
    struct span span = span_of_long(start, end, step, chunk);
    context_begin(context, &span);
    return next_of_long(context, from, to);
}

static bool begin_ull(struct context *context, bool is_up, ull start, ull end, ull step, ull chunk, ull *from, ull *to)
{
    struct span span = span_of_ull(is_up, start, end, step, chunk);
    context_begin(context, &span);
    return next_of_ull(context, from, to);
}

/* The libgomp of a loop that is left to it; counted once for a team. */
static const struct runtime *passed(uintptr_t caller)
{
    const struct runtime *runtime = runtime_at(caller);
    typedef int number(void);
    if (RARELY(settings()->has_statistics) && ((number *)runtime_function(runtime, F_omp_get_thread_num))() == 0)
        statistics_passed();
    return runtime;
}

#define DEFINE_CHUNKED(name)                                                                                           \
    PUBLIC bool GOMP_loop_##name##_start(long start, long end, long step, long chunk, long *from, long *to)            \
    {                                                                                                                  \
        struct context *context = free_at(CALLER, S_##name, step, &chunk);                                             \
        if (context)                                                                                                   \
            return begin_long(context, start, end, step, chunk, from, to);                                             \
        return REAL(passed(CALLER), GOMP_loop_##name##_start)(start, end, step, chunk, from, to);                      \
    }                                                                                                                  \
    PUBLIC bool GOMP_loop_ull_##name##_start(bool is_up, ull start, ull end, ull step, ull chunk, ull *from, ull *to)  \
    {                                                                                                                  \
        long unused;                                                                                                   \
        struct context *context = free_at(CALLER, S_##name, step != 0, &unused);                                       \
        if (context)                                                                                                   \
            return begin_ull(context, is_up, start, end, step, chunk, from, to);                                       \
        return REAL(passed(CALLER), GOMP_loop_ull_##name##_start)(is_up, start, end, step, chunk, from, to);           \
    }
CHUNKED(DEFINE_CHUNKED)

#define DEFINE_OF_RUNTIME(name)                                                                                        \
    PUBLIC bool GOMP_loop_##name##_start(long start, long end, long step, long *from, long *to)                        \
    {                                                                                                                  \
        long chunk;                                                                                                    \
        struct context *context = free_at(CALLER, S_##name, step, &chunk);                                             \
        if (context)                                                                                                   \
            return begin_long(context, start, end, step, chunk, from, to);                                             \
        return REAL(passed(CALLER), GOMP_loop_##name##_start)(start, end, step, from, to);                             \
    }                                                                                                                  \
    PUBLIC bool GOMP_loop_ull_##name##_start(bool is_up, ull start, ull end, ull step, ull *from, ull *to)             \
    {                                                                                                                  \
        long chunk;                                                                                                    \
        struct context *context = free_at(CALLER, S_##name, step != 0, &chunk);                                        \
        if (context)                                                                                                   \
            return begin_ull(context, is_up, start, end, step, chunk > 0 ? (ull)chunk : 1, from, to);                  \
        return REAL(passed(CALLER), GOMP_loop_ull_##name##_start)(is_up, start, end, step, from, to);                  \
    }
OF_RUNTIME(DEFINE_OF_RUNTIME)

#define DEFINE_NEXT(name)                                                                                              \
    PUBLIC bool GOMP_loop_##name##_next(long *from, long *to)                                                          \
    {                                                                                                                  \
        struct context *context = active_at(CALLER);                                                                   \
        return context ? next_of_long(context, from, to)                                                               \
                       : REAL(runtime_at(CALLER), GOMP_loop_##name##_next)(from, to);                                  \
    }                                                                                                                  \
    PUBLIC bool GOMP_loop_ull_##name##_next(ull *from, ull *to)                                                        \
    {                                                                                                                  \
        struct context *context = active_at(CALLER);                                                                   \
        return context ? next_of_ull(context, from, to)                                                                \
                       : REAL(runtime_at(CALLER), GOMP_loop_ull_##name##_next)(from, to);                              \
    }
CHUNKED(DEFINE_NEXT)
OF_RUNTIME(DEFINE_NEXT)

PUBLIC void GOMP_loop_end(void)
{
    struct context *context = active_at(CALLER);
    if (!context) {
        REAL(runtime_at(CALLER), GOMP_loop_end)();
        return;
    }
    context_finish(context);
    REAL(context->module.runtime, GOMP_barrier)();
    if (context->has_team)
        member_met(&context->member);
}

PUBLIC void GOMP_loop_end_nowait(void)
{
    struct context *context = active_at(CALLER);
    if (context)
        context_finish(context);
    else
        REAL(runtime_at(CALLER), GOMP_loop_end_nowait)();
}

/* Whether the region is cancelled: then others may not have come here. */
PUBLIC bool GOMP_loop_end_cancel(void)
{
    struct context *context = active_at(CALLER);
    if (!context)
        return REAL(runtime_at(CALLER), GOMP_loop_end_cancel)();
    context_finish(context);
    bool is_cancelled = REAL(context->module.runtime, GOMP_barrier_cancel)();
    if (context->has_team && !is_cancelled)
        member_met(&context->member);
    return is_cancelled;
}
