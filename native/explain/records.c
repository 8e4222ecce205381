/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "records.h"
#include "os.h"

enum { AT_ONCE = 64 };

/* Blocks are added when all are full. */
struct block {
    struct record records[AT_ONCE];
    struct block *_Atomic next;
};

static struct block first;
/* Where the last free one was found. */
static struct block *_Atomic recent = &first;

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
    if (!fresh)
        return NULL;
    if (atomic_compare_exchange_strong(&block->next, &next, fresh))
        return fresh;
    os_unmap(fresh, sizeof *fresh);
    return next;
}

struct record *record_new(void)
{
    struct block *starts[] = {atomic_load(&recent), &first};
    for (int i = 0; i < 2; i++)
        for (struct block *block = starts[i]; block; block = i ? block_after(block) : atomic_load(&block->next)) {
            struct record *record = free_record(block);
            if (!record)
                continue;
            atomic_store(&recent, block);
            atomic_store(&record->thread, 0);
            record->has_timer = false;
            record->returns_int = false;
            record->stack_low = record->stack_high = 0;
            record->usage = (struct usage){0};
            return record;
        }
    return NULL;
}

void record_free(struct record *record)
{
    atomic_store(&record->thread, 0);
    atomic_store(&record->used, false);
}

struct record *record_at(void *address)
{
    for (struct block *block = &first; block; block = atomic_load_explicit(&block->next, memory_order_acquire)) {
        uintptr_t offset = (uintptr_t)address - (uintptr_t)block->records;
        if (offset < sizeof block->records)
            return offset % sizeof(struct record) ? NULL : address;
    }
    return NULL;
}

void records_each(void (*function)(struct record *))
{
    for (struct block *block = &first; block; block = atomic_load(&block->next))
        for (int i = 0; i < AT_ONCE; i++)
            if (atomic_load(&block->records[i].used))
                function(&block->records[i]);
}

void records_forget(void)
{
    records_each(record_free);
}
