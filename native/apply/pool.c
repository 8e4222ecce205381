/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pool.h"
#include "pages.h"
#include "policy.h"

/* Eight classes for each power of two; up to 128 bytes each multiple of 16. */
enum { CLASSES = 8 + 11 * 8 + 1, SHARES = 16, LINE = 128, BATCH_BYTES = 32 << 10, MOST_BATCH = 32 };
enum { KEPT_BYTES = 16 << 20, TOLD_AT_ONCE = 1024 };
enum { FIRST_SPAN = 64 << 10, LAST_SPAN = 32 << 20, TOUCHED_SPAN = 1 << 20, BLOCKS_OF_A_SPAN = 8 };

/* What threads with one number take from: free blocks, each with the address of the next one in it. */
struct share {
    _Alignas(LINE) struct lock lock;
    void *first;
    uint32_t count;
    uint64_t given; /* blocks that are not told yet */
};

struct pool {
    struct object *object;
    uint16_t node;
    size_t size, batch;
    struct pool *next;              /* of all */
    struct lock lock;
    struct span *spans;             /* those that have blocks, free or never given */
    size_t span_bytes, all_bytes, free_bytes;
    struct share share[SHARES];
};

static struct pool *_Atomic pools;
static struct pool *_Atomic *_Atomic pools_of[MAX_OBJECTS];
static struct lock making;

static __thread unsigned own_share __attribute__((tls_model("initial-exec")));

static unsigned share_number(void)
{
    static atomic_uint threads;
    if (RARELY(own_share == 0))
        own_share = atomic_fetch_add(&threads, 1) % SHARES + 1;
    return own_share - 1;
}

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
    struct pool *pool = os_allocate(sizeof *pool, 0);
    if (!pool)
        return NULL;
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
    pool->all_bytes += bytes;
    join_list(pool, span);
    return span;
}

static inline bool has_blocks(const struct span *span)
{
    return span->free || span->carved < span->capacity;
}

/* A batch of blocks for a share, whose lock is held. */
static void fill(struct pool *pool, struct share *share)
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
        *block = share->first;
        share->first = block;
        share->count++;
    }
    unlock(&pool->lock);
}

static void tell(struct pool *pool, struct share *share)
{
    uint64_t given = share->given;
    share->given = 0;
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
    struct share *share = &pool->share[share_number()];
    lock(&share->lock);
    if (RARELY(!share->first)) {
        fill(pool, share);
        tell(pool, share);
    }
    void **block = share->first;
    if (block) {
        share->first = *block;
        share->count--;
        if (RARELY(++share->given >= TOLD_AT_ONCE))
            tell(pool, share);
    }
    unlock(&share->lock);
    return block;
}

/* Beyond the limit a span without blocks in use is unmapped. */
static bool is_over(const struct pool *pool, const struct span *span)
{
    size_t limit = pool->all_bytes / 8 > KEPT_BYTES ? pool->all_bytes / 8 : KEPT_BYTES;
    return span->free_count == span->carved && pool->free_bytes > limit;
}

/* Gives a batch of a share, whose lock is held, back to the spans. */
static void empty(struct pool *pool, struct share *share)
{
    struct span *over = NULL;
    lock(&pool->lock);
    for (size_t i = 0; i < pool->batch && share->first; i++) {
        void **block = share->first;
        struct span *span = space_span(block);
        share->first = *block;
        share->count--;
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
        space_give(over);
        over = next;
    }
}

void pool_free(struct span *span, void *block)
{
    struct pool *pool = span->pool;
    struct share *share = &pool->share[share_number()];
    pages_sample_freed(span->object, (uintptr_t)block, pool->size);
    lock(&share->lock);
    *(void **)block = share->first;
    share->first = block;
    share->count++;
    if (RARELY(share->count >= 2 * pool->batch + 1))
        empty(pool, share);
    unlock(&share->lock);
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
        for (int i = 0; i < SHARES; i++) {
            lock(&pool->share[i].lock);
            tell(pool, &pool->share[i]);
            unlock(&pool->share[i].lock);
        }
        lock(&pool->lock);
        if (pool->spans)
            pages_add(object, pool->spans->from, pool->spans->carved * pool->size);
        unlock(&pool->lock);
    }
}

void pool_forget(void)
{
    for (struct pool *pool = atomic_load(&pools); pool; pool = pool->next)
        for (int i = 0; i < SHARES; i++)
            pool->share[i].given = 0;
}

void pool_lock(void (*function)(struct lock *))
{
    function(&making);
    for (struct pool *pool = atomic_load(&pools); pool; pool = pool->next)
        for (int i = 0; i < SHARES; i++)
            function(&pool->share[i].lock);
    for (struct pool *pool = atomic_load(&pools); pool; pool = pool->next)
        function(&pool->lock);
}
