/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The malloc family in place of the allocator's. Each calls the allocator's function as the program did, between two
 * readings of the clock, and counts. */
#define _GNU_SOURCE
#include "base/allocator.h"
#include "os.h"
#include "tally.h"
#include <errno.h>
#include <string.h>

#define FRAME ((uintptr_t)__builtin_frame_address(0))
#define CALLER __builtin_return_address(0)

/* A call of the allocator that is counted. `begin` is 0 if nothing is done before the call. */
struct timing {
    struct counter *counter;
    uint64_t begin, called, returned, ran;
};

/* False if it is not counted: nothing is, or an allocator calls its own functions, what is not the program's call. The frame
 * tells whether the call that was noted goes on: a handler of a signal may have left it. */
static inline bool enter(struct timing *timing, uintptr_t frame, void *caller)
{
    timing->begin = 0;
    timing->counter = counter_here();
    if (RARELY(!timing->counter || timing->counter->inside > frame))
        return false;
    timing->counter->inside = frame;
    timing->counter->caller = (uintptr_t)caller;
    return true;
}

/* To be called with what the counting itself does not change. */
static inline void leave(const struct timing *timing, word *time)
{
    struct counter *counter = timing->counter;
    uint64_t took = timing->returned - timing->called;
    add(time, timing->ran);
    add(&counter->shard->counting_ticks, tally_ran(counter, ticks() - timing->begin - took));
    counter->inside = 0;
}

#define TIMED(timing, call)                                                                                            \
    do {                                                                                                               \
        (timing).called = ticks();                                                                                     \
        call;                                                                                                          \
        (timing).returned = ticks();                                                                                   \
        (timing).begin = (timing).begin ? (timing).begin : (timing).called;                                            \
        (timing).ran = tally_ran((timing).counter, (timing).returned - (timing).called);                               \
    } while (0)

/* What of a counted call is in none of its times, on average: the part before the first and behind the last reading of the clock.
 * The least of some rounds. */
static void measure(void)
{
    enum { ROUNDS = 16, CALLS = 64 };
    static struct count_shard nowhere;
    struct counter *counter = counter_here();
    struct count_shard *own = counter ? counter->shard : NULL;
    uint64_t least = UINT64_MAX;
    for (int round = 0; own && round < ROUNDS; round++) {
        counter->shard = &nowhere;
        uint64_t told = nowhere.counting_ticks + nowhere.taking_ticks, begin = ticks();
        for (int call = 0; call < CALLS; call++) {
            struct timing timing;
            if (enter(&timing, FRAME, CALLER)) {
                TIMED(timing, __asm__ volatile(""));
                leave(&timing, &nowhere.taking_ticks);
            }
        }
        uint64_t took = ticks() - begin, more = nowhere.counting_ticks + nowhere.taking_ticks - told;
        counter->shard = own;
        least = took - more < least && took > more ? took - more : least;
    }
    if (least != UINT64_MAX)
        tally_outside(least / CALLS);
}

__attribute__((constructor(101))) static void begin(void)
{
    MALLOC_FAMILY(NEXT_LOOK_UP)
    tally_begin();
    tally_begin_chains();
    measure();
}

#define TAKE(how, bytes, call)                                                                                         \
    struct timing timing;                                                                                              \
    void *block;                                                                                                       \
    if (RARELY(!enter(&timing, FRAME, CALLER)))                                                                                \
        return call;                                                                                                   \
    TIMED(timing, block = call);                                                                                       \
    int after = errno;                                                                                                 \
    tally_taken(timing.counter, how, block, bytes);                                                                    \
    leave(&timing, &timing.counter->shard->taking_ticks);                                                              \
    errno = after;                                                                                                     \
    return block

PUBLIC void *malloc(size_t bytes)
{
    ALLOCATOR_OR(early_allocate(bytes, 0), malloc);
    TAKE(BY_MALLOC, bytes, next(bytes));
}

PUBLIC void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (RARELY(__builtin_mul_overflow(count, size, &bytes)))
        bytes = SIZE_MAX;
    ALLOCATOR_OR(early_allocate(bytes, 0), calloc);
    TAKE(BY_CALLOC, bytes, next(count, size));
}

PUBLIC void free(void *block)
{
    struct timing timing;
    __typeof__(&free) next = ALLOCATOR(free);
    if (RARELY(!block || early_has(block) || !next))
        return;
    if (RARELY(!enter(&timing, FRAME, CALLER))) {
        next(block);
        return;
    }
    int before = errno;
    timing.begin = ticks();
    struct gone gone = tally_forget(block);
    TIMED(timing, next(block));
    tally_gave(timing.counter, &gone);
    leave(&timing, &timing.counter->shard->giving_ticks);
    errno = before;
}

/* An allocation and a free. */
PUBLIC void *realloc(void *old, size_t bytes)
{
    struct timing timing;
    if (RARELY(early_has(old)))
        return early_move(old, bytes);
    ALLOCATOR_OR(old ? NULL : early_allocate(bytes, 0), realloc);
    if (RARELY(!enter(&timing, FRAME, CALLER)))
        return next(old, bytes);
    timing.begin = ticks();
    struct gone gone = old ? tally_forget(old) : (struct gone){0};
    void *block;
    TIMED(timing, block = next(old, bytes));
    int after = errno;
    bool is_freed = old && (block || bytes == 0);
    if (is_freed)
        tally_gave(timing.counter, &gone);
    else if (old)
        tally_kept(old, &gone);
    if (block || bytes || !old)
        tally_taken(timing.counter, old ? BY_REALLOC : BY_MALLOC, block, bytes);
    leave(&timing, &timing.counter->shard->taking_ticks);
    errno = after;
    return block;
}

PUBLIC void *memalign(size_t alignment, size_t bytes)
{
    ALLOCATOR_OR(early_allocate(bytes, alignment), memalign);
    TAKE(BY_ALIGNED, bytes, next(alignment, bytes));
}

PUBLIC void *aligned_alloc(size_t alignment, size_t bytes)
{
    ALLOCATOR_OR(early_allocate(bytes, alignment), aligned_alloc);
    TAKE(BY_ALIGNED, bytes, next(alignment, bytes));
}

PUBLIC int posix_memalign(void **result, size_t alignment, size_t bytes)
{
    struct timing timing;
    int error;
    ALLOCATOR_OR((*result = early_allocate(bytes, alignment)) ? 0 : ENOMEM, posix_memalign);
    if (RARELY(!enter(&timing, FRAME, CALLER)))
        return next(result, alignment, bytes);
    TIMED(timing, error = next(result, alignment, bytes));
    int after = errno;
    tally_taken(timing.counter, BY_ALIGNED, error ? NULL : *result, bytes);
    leave(&timing, &timing.counter->shard->taking_ticks);
    errno = after;
    return error;
}

PUBLIC void *valloc(size_t bytes)
{
    ALLOCATOR_OR(NULL, valloc);
    TAKE(BY_ALIGNED, bytes, next(bytes));
}

PUBLIC void *pvalloc(size_t bytes)
{
    ALLOCATOR_OR(NULL, pvalloc);
    TAKE(BY_ALIGNED, bytes, next(bytes));
}
