/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "records.h"
#include "os.h"
#include <string.h>

enum { AT_ONCE = 64 };

/* Blocks are added when all are full; the records are behind. */
struct records_block {
    _Alignas(16) struct records_block *_Atomic next;
};

static struct record *record_in(const struct records *records, struct records_block *block, size_t number)
{
    return (struct record *)((char *)(block + 1) + number * records->bytes);
}

static struct record *free_record(const struct records *records, struct records_block *block)
{
    for (size_t i = 0; block && i < AT_ONCE; i++) {
        struct record *record = record_in(records, block, i);
        if (!atomic_load_explicit(&record->used, memory_order_relaxed) && !atomic_exchange(&record->used, true))
            return record;
    }
    return NULL;
}

/* What is linked here, or what is linked now. */
static struct records_block *block_at(const struct records *records, struct records_block *_Atomic *link)
{
    size_t bytes = sizeof(struct records_block) + AT_ONCE * records->bytes;
    struct records_block *block = atomic_load(link), *fresh = block ? NULL : os_allocate(bytes, 0);
    if (!fresh)
        return block;
    if (atomic_compare_exchange_strong(link, &block, fresh))
        return fresh;
    os_unmap(fresh, bytes);
    return block;
}

void *record_new(struct records *records, struct task task)
{
    struct records_block *block = atomic_load(&records->recent), *_Atomic *link = &records->first;
    struct record *record = free_record(records, block);
    for (; !record && (block = block_at(records, link)); link = &block->next)
        record = free_record(records, block);
    if (!record)
        return NULL;
    atomic_store(&records->recent, block);
    record->task = task;
    memset(record + 1, 0, records->bytes - sizeof *record);
    return record;
}

void record_free(void *record)
{
    atomic_store(&((struct record *)record)->used, false);
}

void *record_at(const struct records *records, void *address)
{
    struct records_block *block = atomic_load(&records->first);
    for (; block; block = atomic_load_explicit(&block->next, memory_order_acquire)) {
        uintptr_t offset = (uintptr_t)address - (uintptr_t)record_in(records, block, 0);
        if (offset < AT_ONCE * records->bytes)
            return offset % records->bytes ? NULL : address;
    }
    return NULL;
}

void records_each(const struct records *records, void (*function)(void *record))
{
    struct records_block *block = atomic_load(&records->first);
    for (; block; block = atomic_load(&block->next))
        for (size_t i = 0; i < AT_ONCE; i++)
            if (atomic_load(&record_in(records, block, i)->used))
                function(record_in(records, block, i));
}

void records_forget(const struct records *records)
{
    records_each(records, record_free);
}
