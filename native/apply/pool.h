/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Small and middle blocks: those of one object, one node and one class of sizes share spans with one policy. Threads take
 * and give them by lists of their own; spans whose blocks are all free are unmapped beyond a limit. */
#ifndef POOL_H
#define POOL_H

#include "lists.h"
#include "space.h"

#define POOL_MOST ((size_t)256 << 10)
#define POOL_MOST_ALIGNMENT ((size_t)4096)

/* From which list the thread took last: the same object and size is often wanted again. */
struct recent {
    const struct object *object;
    size_t size;
    struct list *list;
    unsigned left;      /* uses, until the thread is asked for its node again */
};

enum { USES = 32, TOLD_AT_ONCE = 1024 };

extern __thread struct recent pool_recent __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A block as the thread took last; NULL if there is none so fast. */
static inline void *pool_again(const struct object *object, size_t size)
{
    struct recent *recent = &pool_recent;
    if (recent->object != object || recent->size != size || recent->left == 0)
        return NULL;
    struct list *list = recent->list;
    void **block = list->first;
    if (RARELY(!block || list->given >= TOLD_AT_ONCE))
        return NULL;
    recent->left--;
    list->first = *block;
    list->count--;
    list->given++;
    return block;
}

void pool_free_slowly(struct span *span, void *block);

static inline void pool_free(struct span *span, void *block)
{
    struct lists *lists = own_lists;
    struct list *list = lists ? &lists->list[span->number] : NULL;
    if (RARELY(!list || list->count >= list->most)) {
        pool_free_slowly(span, block);
        return;
    }
    *(void **)block = list->first;
    list->first = block;
    list->count++;
}

/* NULL if it cannot have its policy. Its content is undefined. */
void *pool_new(struct object *object, size_t size, size_t alignment, uint16_t node);
size_t pool_usable(const struct span *span);

/* Counts on which nodes spans of the object are. */
void pool_sample(struct object *object);

/* In a forked child: what its parent has not told yet, the parent tells itself. */
void pool_forget(void);

void pool_lock(void (*function)(struct lock *));

#endif
