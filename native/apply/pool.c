/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pool.h"
#include "pages.h"
#include "policy.h"

/* Eight classes for each power of two; up to 128 bytes each multiple of 16. */
enum { CLASSES = 8 + 11 * 8 + 1, LINE = 128, BATCH_BYTES = 32 << 10, MOST_BATCH = 32 };
enum { KEPT_BYTES = 16 << 20 };

__thread struct recent pool_recent;
enum { FIRST_SPAN = 64 << 10, LAST_SPAN = 32 << 20, TOUCHED_SPAN = 1 << 20, BLOCKS_OF_A_SPAN = 8 };

struct pool {
    struct object *object;
    uint32_t number;
    uint16_t node;
    size_t size, batch;
    struct pool *next;              /* of all */
    struct lock lock;
    struct span *spans;             /* those that have blocks, free or never given */
    size_t span_bytes, all_bytes, free_bytes;
};

static struct pool *_Atomic pools;
static struct pool *_Atomic *_Atomic pools_of[MAX_OBJECTS];
static struct lock making;
static uint32_t pool_count;

static unsigned class_of(size_t size)
{
    if (size <= 128)
        return size ? (unsigned)((size - 1) / 16) : 0;
    unsigned power = 63 - (unsigned)__builtin_clzl(size - 1);
    return 8 + (power - 7) * 8 + (unsigned)((size - 1) >> (power - 3) & 7);
}

static size_t class_bytes(unsigned class)
{
    if (class < 8)
        return (class + 1) * 16;
    unsigned power = (class - 8) / 8 + 7;
    return ((size_t)8 + (class - 8) % 8 + 1) << (power - 3);
}

static struct pool *make_pool(struct object *object, uint16_t node, unsigned class)
{
    struct pool *pool = pool_count < MAX_POOLS ? os_allocate(sizeof *pool, 0) : NULL;
    if (!pool)
        return NULL;
    pool->number = pool_count++;
    pool->object = object;
    pool->node = node;
    pool->size = class_bytes(class);
    pool->batch = BATCH_BYTES / pool->size;
    pool->batch = pool->batch < 1 ? 1 : pool->batch > MOST_BATCH ? MOST_BATCH : pool->batch;
    pool->span_bytes = FIRST_SPAN;
    while (pool->span_bytes < pool->size * BLOCKS_OF_A_SPAN)
        pool->span_bytes *= 2;
    pool->next = atomic_load(&pools);
    while (!atomic_compare_exchange_weak(&pools, &pool->next, pool))
        continue;
    return pool;
}

/* The pools of an object by node and class; memory without a node is that of node 0. */
static struct pool *pool_of(struct object *object, uint16_t node, unsigned class)
{
    size_t number = (size_t)(object - cure.object), nodes = cure.node_count ? cure.node_count : 1;
    struct pool *_Atomic *all = atomic_load_explicit(&pools_of[number], memory_order_acquire), *pool = NULL;
    size_t at = (node == ANY_NODE ? 0 : node) * (size_t)CLASSES + class;
    if (all && (pool = atomic_load_explicit(&all[at], memory_order_acquire)))
        return pool;
    lock(&making);
    all = atomic_load(&pools_of[number]);
    if (!all) {
        all = os_allocate(nodes * CLASSES * sizeof *all, 0);
        atomic_store(&pools_of[number], all);
    }
    pool = all ? atomic_load(&all[at]) : NULL;
    if (all && !pool) {
        pool = make_pool(object, node, class);
        atomic_store(&all[at], pool);
    }
    unlock(&making);
    return pool;
}

static void leave_list(struct pool *pool, struct span *span)
{
    if (span->previous)
        span->previous->next = span->next;
    else
        pool->spans = span->next;
    if (span->next)
        span->next->previous = span->previous;
    span->next = span->previous = NULL;
}

static void join_list(struct pool *pool, struct span *span)
{
    span->previous = NULL;
    span->next = pool->spans;
    if (pool->spans)
        pool->spans->previous = span;
    pool->spans = span;
}

/* Spans become larger with the pool, so that they are few. */
static struct span *new_span(struct pool *pool)
{
    struct object *object = pool->object;
    size_t bytes = pool->span_bytes, most = cure.is_refused ? TOUCHED_SPAN : LAST_SPAN;
    while (bytes < most && bytes < pool->all_bytes / 4)
        bytes *= 2;
    size_t alignment = object->pages == PAGES_HUGE && bytes >= 2 << 20 ? 2 << 20 : 0;
    if (!policy_can_be_set(object))
        return NULL;
    struct span *span = space_take(bytes, alignment, 1);
    if (!span)
        return NULL;
    span->object = object;
    span->node = pool->node;
    span->capacity = (uint32_t)(bytes / pool->size);
    bool has_policy = policy_set(object, span->from, bytes, pool->node, false);
    if (!has_policy) {
        space_give(span);
        return NULL;
    }
    span->pool = pool;
    span->number = pool->number;
    pool->all_bytes += bytes;
    join_list(pool, span);
    return span;
}

static inline bool has_blocks(const struct span *span)
{
    return span->free || span->carved < span->capacity;
}

/* A batch of blocks for a list. */
static __attribute__((noinline)) void fill(struct pool *pool, struct list *list)
{
    lock(&pool->lock);
    for (size_t i = 0; i < pool->batch; i++) {
        struct span *span = pool->spans ? pool->spans : new_span(pool);
        if (!span)
            break;
        void **block = span->free;
        if (block) {
            span->free = *block;
            span->free_count--;
            pool->free_bytes -= pool->size;
        } else {
            block = (void **)(span->from + span->carved++ * pool->size);
        }
        if (!has_blocks(span))
            leave_list(pool, span);
        *block = list->first;
        list->first = block;
        list->count++;
    }
    unlock(&pool->lock);
}

static __attribute__((noinline)) void tell(struct pool *pool, uint64_t given)
{
    if (given)
        policy_count(pool->object, given, given * pool->size);
}

void *pool_new(struct object *object, size_t size, size_t alignment, uint16_t node)
{
    size_t step = object->policy == AS_PADDED ? LINE : 16, wanted = size ? size : 1;
    if (RARELY(alignment > step)) {
        /* Blocks of a power of two begin at its multiples, as spans begin at those of all of them. */
        size_t power = alignment;
        while (power < wanted)
            power *= 2;
        wanted = power;
    }
    wanted = object->policy == AS_PADDED ? (wanted + LINE - 1) / LINE * LINE : wanted;
    unsigned class = class_of(wanted);
    /* Larger classes need not be multiples of a line. */
    while (RARELY(object->policy == AS_PADDED && class_bytes(class) % LINE))
        class++;
    if (RARELY(class >= CLASSES))
        return NULL;
    struct pool *pool = pool_of(object, node, class);
    if (RARELY(!pool))
        return NULL;
    struct list *list = list_of(pool->number);
    if (RARELY(!list))
        return NULL;
    list->most = (uint16_t)(2 * pool->batch);
    if (RARELY(!list->first))
        fill(pool, list);
    void **block = list->first;
    if (RARELY(!block))
        return NULL;
    list->first = *block;
    list->count--;
    if (RARELY(++list->given >= TOLD_AT_ONCE || (cure.verbose && !object->was_said))) {
        tell(pool, list->given);
        list->given = 0;
    }
    bool is_one = object->policy != AS_PARTS && alignment <= step;
    pool_recent = (struct recent){object, size, list, is_one ? USES : 0};
    return block;
}

/* Beyond the limit a span without blocks in use is unmapped. */
static bool is_over(const struct pool *pool, const struct span *span)
{
    size_t limit = pool->all_bytes / 8 > KEPT_BYTES ? pool->all_bytes / 8 : KEPT_BYTES;
    return span->free_count == span->carved && pool->free_bytes > limit && !is_filtered();
}

/* Gives a batch of a list back to the spans. */
static __attribute__((noinline)) void empty(struct pool *pool, struct list *list)
{
    struct span *over = NULL;
    lock(&pool->lock);
    for (size_t i = 0; i < pool->batch && list->first; i++) {
        void **block = list->first;
        struct span *span = space_span(block);
        list->first = *block;
        list->count--;
        if (!has_blocks(span))
            join_list(pool, span);
        *block = span->free;
        span->free = block;
        span->free_count++;
        pool->free_bytes += pool->size;
        if (!is_over(pool, span))
            continue;
        leave_list(pool, span);
        pool->free_bytes -= span->free_count * pool->size;
        pool->all_bytes -= span->bytes;
        span->next = over;
        over = span;
    }
    unlock(&pool->lock);
    while (over) {
        struct span *next = over->next;
        pages_sample_freed(over->object, over->from, over->bytes);
        space_give(over);
        over = next;
    }
}

void pool_free_slowly(struct span *span, void *block)
{
    struct list alone = {0}, *list = list_of(span->number);
    if (list)
        list->most = (uint16_t)(2 * span->pool->batch);
    else
        list = &alone;
    *(void **)block = list->first;
    list->first = block;
    if (++list->count > list->most)
        empty(span->pool, list);
}

size_t pool_usable(const struct span *span)
{
    return span->pool->size;
}

void pool_sample(struct object *object)
{
    for (struct pool *pool = atomic_load(&pools); pool; pool = pool->next) {
        if (pool->object != object)
            continue;
        tell(pool, lists_given(pool->number));
        if (!lock_briefly(&pool->lock))
            continue;
        if (pool->spans)
            pages_add(pool->spans->from, pool->spans->carved * pool->size);
        unlock(&pool->lock);
    }
}

void pool_forget(void)
{
    lists_forget(pool_count);
}

void pool_lock(void (*function)(struct lock *))
{
    function(&making);
    lists_lock(function);
    for (struct pool *pool = atomic_load(&pools); pool; pool = pool->next)
        function(&pool->lock);
}
