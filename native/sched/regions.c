/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "regions.h"
#include "nodes.h"
#include "os.h"
#include "settings.h"
#include <string.h>

enum {
    TEAMS = 64,                    /* that are kept while no region has them */
    LEAST_CAPACITY = 64,
    SETTLED = 64,                  /* regions between two times that lines follow members */
};

struct team {
    struct shares *shares;
    struct timing *timing;
    struct region region;          /* of an old caller */
    struct context first;
    uint32_t regions;              /* since lines were laid out */
};

__thread struct context *current;

static struct team *_Atomic teams[TEAMS];

/* A thread finds the team that it had before, whose members are those that it will have. */
static unsigned usual_place(void)
{
    unsigned depth = 0;
    for (const struct context *context = current; context; context = context->outer)
        depth++;
    return (unsigned)((uintptr_t)&current * UINT64_C(0x9e3779b97f4a7c15) >> 58) + depth;
}

static void team_free(struct team *team)
{
    if (team->timing)
        timing_free(team->timing, team->shares->capacity);
    shares_free(team->shares);
    os_unmap(team, sizeof *team);
}

static struct team *team_new(uint32_t capacity)
{
    struct team *team = os_allocate(sizeof *team, 0);
    if (!team)
        return NULL;
    team->shares = shares_new(capacity);
    if (!team->shares) {
        os_unmap(team, sizeof *team);
        return NULL;
    }
    if (settings()->has_statistics)
        team->timing = timing_new(capacity);
    return team;
}

bool region_take_team(struct region *region, uint32_t bound)
{
    if (bound > MAX_MEMBERS)
        return false;
    unsigned usual = usual_place();
    for (unsigned i = 0; i < TEAMS && !region->team; i++) {
        struct team *_Atomic *place = &teams[(usual + i) % TEAMS];
        if (!atomic_load_explicit(place, memory_order_relaxed))
            continue;
        struct team *team = atomic_exchange_explicit(place, NULL, memory_order_acq_rel);
        if (team && team->shares->capacity < bound)
            team_free(team);
        else
            region->team = team;
    }
    if (!region->team)
        region->team = team_new(bound < LEAST_CAPACITY ? LEAST_CAPACITY : bound);
    if (!region->team)
        return false;
    struct shares *shares = region->team->shares;
    region->must_settle = region->team->regions++ > SETTLED &&
                          atomic_load_explicit(&shares->has_moved, memory_order_relaxed);
    return true;
}

void region_give_team(struct region *region)
{
    struct team *team = region->team;
    /* Others may have been in loops where the first member was in none. */
    if (region->next) {
        if (team->timing)
            timing_fold_rest(team->timing, team->shares, region->next);
        shares_advance(team->shares, region->next);
    }
    unsigned usual = usual_place();
    for (unsigned i = 0; i < TEAMS; i++) {
        struct team *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&teams[(usual + i) % TEAMS], &none, team, memory_order_acq_rel,
                                                    memory_order_relaxed))
            return;
    }
    team_free(team);
}

struct context *region_first(struct region *region)
{
    return &region->team->first;
}

struct region *region_of_team(struct region *region)
{
    region->team->region = *region;
    return &region->team->region;
}

static int asked(const struct runtime *runtime, enum function function)
{
    return ((int (*)(void))runtime_function(runtime, function))();
}

static void meet(const struct runtime *runtime)
{
    runtime_function(runtime, F_GOMP_barrier)();
}

/* All members say where they are before lines are laid out. All come to the same answer, by what nobody changes before the
 * first barrier. */
static bool has_settled(const struct context *context)
{
    const struct region *region = context->region;
    struct team *team = region->team;
    struct shares *shares = team->shares;
    if (context->count > shares->capacity)
        return false;
    if (shares->count == context->count && !region->must_settle)
        return true;
    atomic_store(&shares->nodes[context->number], (int16_t)node_here(context->number, context->count));
    meet(context->module.runtime);
    if (context->number == 0) {
        team->regions = 0;
        if (!shares_settle(shares, context->count))
            shares->count = 0;
    }
    meet(context->module.runtime);
    return shares->count == context->count;
}

void context_enter(struct context *context, struct region *region)
{
    const struct runtime *runtime = region->module.runtime;
    context->outer = current;
    context->region = region;
    context->module = region->module;
    context->level = asked(runtime, F_omp_get_level);
    context->number = (uint32_t)asked(runtime, F_omp_get_thread_num);
    context->count = (uint32_t)asked(runtime, F_omp_get_num_threads);
    context->is_active = false;
    context->tally = (struct tally){0};
    context->has_team = context->count > 1 && has_settled(context);
    context->timing = context->has_team ? region->team->timing : NULL;
    current = context;
    if (context->has_team)
        member_join(&context->member, region->team->shares, context->number,
                    node_here(context->number, context->count));
    if (region->has_loop)
        context_begin(context, &region->span);
}

void context_leave(struct context *context)
{
    if (context->timing) {
        tally_end(&context->tally, context->timing, &context->member);
        tally_add(&context->tally);
    }
    if (context->has_team && context->number == 0)
        context->region->next = context->member.next;
    current = context->outer;
}

void region_run(void *argument)
{
    struct region *region = argument;
    struct context context;
    context_enter(&context, region);
    region->function(region->data);
    context_leave(&context);
}

/* Without a team, each member runs what a static schedule would give it. */
static void begin_part(struct context *context)
{
    struct span *span = &context->span;
    uint64_t quotient = span->iterations / context->count, rest = span->iterations % context->count;
    uint64_t before = context->number < rest ? context->number : rest;
    uint64_t begin = context->number * quotient + before;
    context->left = quotient + (context->number < rest);
    if (begin + context->left < span->iterations)
        span->end = span->start + (begin + context->left) * span->step;
    span->start += begin * span->step;
}

void context_begin(struct context *context, const struct span *span)
{
    context->span = *span;
    context->is_active = true;
    if (!context->has_team) {
        begin_part(context);
        return;
    }
    struct member *member = &context->member;
    uint64_t least = settings()->chunk > 1 && span->units ? iterations_of(settings()->chunk, span->unit) : 1;
    if (nodes_count() > 1)
        member_place(member, node_here(context->number, context->count));
    member_begin(member, span->units, least > MAX_UNITS ? MAX_UNITS : (uint32_t)least);
    if (context->timing && context->number == 0)
        timing_fold(context->timing, member->shares, member->loop);
}

void context_finish(struct context *context)
{
    if (context->timing)
        tally_end(&context->tally, context->timing, &context->member);
    context->is_active = false;
    if (context->has_team)
        member_finish(&context->member);
}

bool context_next(struct context *context, uint64_t *from, uint64_t *to)
{
    const struct span *span = &context->span;
    struct range range;
    if (!context->has_team) {
        if (context->left == 0)
            return false;
        context->left = 0;
        *from = span->start;
        *to = span->end;
        return true;
    }
    if (!member_take(&context->member, &range)) {
        if (context->timing)
            tally_end(&context->tally, context->timing, &context->member);
        return false;
    }
    *from = value_at(span, range.begin);
    *to = value_at(span, range.end);
    if (context->timing)
        tally_chunk(&context->tally, context->timing, &context->member, span, &range);
    return true;
}
