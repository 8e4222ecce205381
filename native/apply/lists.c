/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pool.h"
#include "base/newer.h"
#include <pthread.h>
#include <stddef.h>

__thread struct lists *own_lists;

static struct lock lock_of_all;
static struct lists *all, *free_ones;
static pthread_key_t at_end;
static bool has_key;

static void ended(void *value)
{
    struct lists *lists = value;
    own_lists = NULL;
    pool_recent.left = 0;
    lock(&lock_of_all);
    lists->next_free = free_ones;
    free_ones = lists;
    unlock(&lock_of_all);
}

void lists_begin(void)
{
    has_key = threads_are_there() && pthread_key_create(&at_end, ended) == 0;
}

struct lists *lists_take(void)
{
    lock(&lock_of_all);
    struct lists *lists = free_ones;
    if (lists)
        free_ones = lists->next_free;
    unlock(&lock_of_all);
    if (!lists && !is_filtered() && (lists = os_allocate(sizeof *lists, 0))) {
        lock(&lock_of_all);
        lists->next = all;
        all = lists;
        unlock(&lock_of_all);
    }
    own_lists = lists;
    /* Allocates: the thread has its lists already. */
    if (lists && has_key)
        pthread_setspecific(at_end, lists);
    return lists;
}

uint64_t lists_given(uint32_t pool)
{
    uint64_t given = 0;
    if (!lock_briefly(&lock_of_all))
        return 0;
    for (struct lists *lists = all; lists; lists = lists->next)
        given += __atomic_exchange_n(&lists->list[pool].given, 0, __ATOMIC_RELAXED);
    unlock(&lock_of_all);
    return given;
}

void lists_forget(uint32_t pools)
{
    all = own_lists;
    free_ones = NULL;
    if (!all)
        return;
    all->next = NULL;
    for (uint32_t i = 0; i < pools; i++)
        all->list[i].given = 0;
}

void lists_lock(void (*function)(struct lock *))
{
    function(&lock_of_all);
}
