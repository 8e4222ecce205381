/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parallel regions as this library sees them: each member of a team runs the region's function with a context of its own. A
 * region that was begun without us has none, and its loops are libgomp's. */
#ifndef SCHED_REGIONS_H
#define SCHED_REGIONS_H

#include "runtimes.h"
#include "shares.h"
#include "spans.h"
#include "statistics.h"

/* What is kept from one region to the next of the same thread. */
struct team;

/* What the thread that begins a region tells the others. */
struct region {
    void *reductions;              /* GOMP_parallel_reductions reads the first word of what the function gets */
    void (*function)(void *);
    void *data;
    struct module module;          /* whose code began it */
    struct team *team;
    uint64_t next;                 /* the first member's next loop, when it has left */
    bool is_old;                   /* begun by GOMP_parallel_start: the first member runs the function without us */
    bool has_loop;                 /* it begins with a loop that is already begun */
    bool must_settle;              /* members have moved */
    struct span span;
};

struct context {
    struct context *outer;
    struct region *region;
    struct module module;          /* as the region's */
    int level;
    bool is_active;                /* in a loop with shares, or with a part of one where there is no team */
    bool has_team;
    uint32_t number, count;
    struct span span;              /* of the present loop */
    struct member member;
    uint64_t left;                 /* without a team: iterations of the static part that are left */
    struct timing *timing;         /* NULL without statistics */
    struct tally tally;
};

/* The innermost context of the calling thread; NULL in no region of ours. */
extern __thread struct context *current __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The team for a region of up to `bound` members; false if there is no memory for it. */
bool region_take_team(struct region *region, uint32_t bound);
/* After the last member has left. */
void region_give_team(struct region *region);

/* In each member; the context lives until it leaves. */
void context_enter(struct context *context, struct region *region);
void context_leave(struct context *context);
/* The region's function in a member; what libgomp is told to run. */
void region_run(void *region);

/* Where an old caller's first member has its context and its region, until GOMP_parallel_end. */
struct context *region_first(struct region *region);
struct region *region_of_team(struct region *region);

/* Enters a loop, and leaves it. */
void context_begin(struct context *context, const struct span *span);
void context_finish(struct context *context);
/* The next chunk: its first value and the one behind it. */
bool context_next(struct context *context, uint64_t *from, uint64_t *to);

static inline bool context_is_here(const struct context *context, uintptr_t caller)
{
    const struct module *module = &context->module;
    typedef int level(void);
    return (module_has(module, caller) || module_of(caller)->runtime == module->runtime) &&
           ((level *)module->runtime->functions[F_omp_get_level])() == context->level;
}

#endif
