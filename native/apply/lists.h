/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Free blocks of each thread, a list for each pool: only the thread itself uses them, without locks. When it ends, the next new thread
 * takes its lists over. */
#ifndef LISTS_H
#define LISTS_H

#include "cure.h"

enum { MAX_POOLS = 4096 };

/* Each block has the address of the next one in it. */
struct list {
    void *first;
    uint32_t count;
    uint16_t most;  /* more are given back; 0: the thread had none of the pool yet */
    uint16_t given; /* blocks that are not told yet */
};

struct lists {
    struct list list[MAX_POOLS];
    struct lists *next, *next_free;
};

extern __thread struct lists *own_lists __attribute__((tls_model("initial-exec"), visibility("hidden")));

void lists_begin(void);

/* Lists for the calling thread; NULL without memory, or where none may be asked for. */
struct lists *lists_take(void);

/* The thread's list of a pool, or NULL. */
static inline struct list *list_of(uint32_t pool)
{
    struct lists *lists = own_lists;
    if (RARELY(!lists))
        lists = lists_take();
    return lists ? &lists->list[pool] : NULL;
}

/* Blocks of a pool that no thread has told yet; from now on they are told. */
uint64_t lists_given(uint32_t pool);

/* In a forked child, which has only the calling thread. */
void lists_forget(uint32_t pools);

void lists_lock(void (*function)(struct lock *));

#endif
