/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "create.h"
#include "begin.h"
#include "newer.h"
#include "next.h"
#include "records.h"
#include "ring.h"
#include "timers.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

typedef int int_function(void *);

static pthread_key_t at_end;
static bool has_key;

static void ended(void *record)
{
    timer_stop(record);
    record_free(record);
}

void create_begin(void)
{
    has_key = threads_are_there() && pthread_key_create(&at_end, ended) == 0;
}

static void sample_this_thread(struct record *record)
{
    /* Without a key nobody would end the timer. */
    if (has_key && pthread_setspecific(at_end, record) == 0) {
        timer_start(record);
        return;
    }
    record_free(record);
    ring_count_thread(false);
}

void create_first_thread(void)
{
    struct record *record = record_new();
    if (record && !threads_are_there())
        timer_start(record);
    else if (record)
        sample_this_thread(record);
}

static void *thread_main(void *argument)
{
    struct record *record = argument;
    void *(*function)(void *) = record->function;
    void *its_argument = record->argument;
    bool returns_int = record->returns_int;
    sample_this_thread(record);
    if (returns_int)
        return (void *)(intptr_t)((int_function *)(void (*)(void))function)(its_argument);
    return function(its_argument);
}

/* The function that a new thread is for, behind this library's: for libraries that treat threads by it. */
PUBLIC void *numaexplain_function_of(void *function, void *argument)
{
    void *own, *program;
    void *(*begin)(void *) = thread_main;
    memcpy(&own, &begin, sizeof own);
    if (function != own)
        return function;
    memcpy(&program, &((struct record *)argument)->function, sizeof program);
    return program;
}

static struct record *start_of(void *(*function)(void *), void *argument, bool returns_int)
{
    struct record *record = timers_are_wanted() ? record_new() : NULL;
    if (record) {
        record->function = function;
        record->argument = argument;
        record->returns_int = returns_int;
    }
    return record;
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument)
{
    library_begin(environ);
    if (!NEXT(pthread_create))
        return EAGAIN;
    struct record *record = start_of(function, argument, false);
    if (!record)
        return NEXT(pthread_create)(thread, attributes, function, argument);
    int error = NEXT(pthread_create)(thread, attributes, thread_main, record);
    if (error)
        record_free(record);
    return error;
}

PUBLIC int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    library_begin(environ);
    if (!NEXT(thrd_create))
        return thrd_error;
    /* It returns an int, also to thrd_join: the C library's pthread_create keeps all of the value. */
    struct record *record = start_of((void *(*)(void *))(void (*)(void))function, argument, true);
    if (!record)
        return NEXT(thrd_create)(thread, function, argument);
    int error = NEXT(thrd_create)(thread, (thrd_start_t)(void (*)(void))thread_main, record);
    if (error != thrd_success)
        record_free(record);
    return error;
}
