/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "starts.h"
#include <stdatomic.h>

enum { AT_ONCE = 32 };

struct record {
    struct start start;
    atomic_bool used;
};

/* Blocks are added when all are full, and are never freed. */
struct block {
    struct record records[AT_ONCE];
    struct block *_Atomic next;
};

static struct block first;

static struct record *free_record(struct block *block)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (!atomic_load_explicit(&block->records[i].used, memory_order_relaxed) &&
            !atomic_exchange(&block->records[i].used, true))
            return &block->records[i];
    return NULL;
}

static struct block *block_after(struct block *block)
{
    struct block *next = atomic_load(&block->next);
    if (next)
        return next;
    struct block *fresh = os_allocate(sizeof *fresh, 0);
    if (fresh && atomic_compare_exchange_strong(&block->next, &next, fresh))
        return fresh;
    if (fresh)
        os_unmap(fresh, sizeof *fresh);
    return next;
}

struct start *start_new(void *(*function)(void *), void *argument)
{
    for (struct block *block = &first; block; block = block_after(block)) {
        struct record *record = free_record(block);
        if (record) {
            record->start = (struct start){
                .function = function, .argument = argument, .place = NO_PLACE};
            return &record->start;
        }
    }
    return NULL;
}

void start_free(struct start *start)
{
    atomic_store(&((struct record *)start)->used, false);
}

void starts_forget(void)
{
    for (struct block *block = &first; block; block = atomic_load(&block->next))
        for (int i = 0; i < AT_ONCE; i++)
            atomic_store(&block->records[i].used, false);
}
