/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Records of threads, each from before the thread's start: by it the creator says what the thread is for. They do not use
 * malloc, which would create an arena for a thread that only frees one. They are never unmapped: a signal that is late finds
 * one that is not in use. Nobody waits for anybody. */
#ifndef RECORDS_H
#define RECORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a thread is for. */
struct task {
    void *(*function)(void *);
    void *argument;
    bool returns_int; /* `function` returns an int */
};

/* The beginning of a library's own record. */
struct record {
    struct task task;
    atomic_bool used;
};

/* All of a library. */
struct records {
    size_t bytes;     /* of one */
    struct records_block *_Atomic first, *_Atomic recent;
};

/* One that is free, with zeros behind its beginning; NULL if there is no memory. */
void *record_new(struct records *records, struct task task);
void record_free(void *record);

/* The record at this address if there is one. Async-signal-safe. */
void *record_at(const struct records *records, void *address);

/* Calls the function for all that are used. */
void records_each(const struct records *records, void (*function)(void *record));

/* In a forked child, which has only the calling thread. */
void records_forget(const struct records *records);

/* The task is a copy, since the record may be another thread's by now. */
static inline void *task_run(struct task task)
{
    typedef int int_function(void *);
    if (task.returns_int)
        return (void *)(intptr_t)((int_function *)(void (*)(void))task.function)(task.argument);
    return task.function(task.argument);
}

#endif
