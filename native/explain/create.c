/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "create.h"
#include "allocation.h"
#include "base/begin.h"
#include "base/newer.h"
#include "functions.h"
#include "os.h"
#include "ring.h"
#include "thread.h"
#include "timers.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <threads.h>
#include <unistd.h>


struct records threads = {.bytes = sizeof(struct thread)};

static pthread_key_t at_end;
static bool has_key;
static size_t default_stack_bytes;

static void ended(void *record)
{
    timer_stop(record);
    log_thread_ended();
    record_free(record);
}

enum { MARGIN = 1 << 16, MAX_FIRST = 8 << 20 };

/* Between a frame of the thread and as many bytes below as it has certainly, without the guard pages. */
static void note_stack(struct thread *record, uint64_t high, size_t bytes)
{
    if (bytes <= 2 * MARGIN)
        return;
    record->stack_high = high;
    record->stack_low = high - bytes + MARGIN;
}

static size_t stack_bytes_of(const pthread_attr_t *attributes)
{
    size_t bytes = 0;
    if (attributes)
        return pthread_attr_getstacksize(attributes, &bytes) ? 0 : bytes;
    return default_stack_bytes;
}

void create_begin(void)
{
    pthread_attr_t attributes;
    if (threads_are_there() && default_attributes(&attributes) == 0) {
        default_stack_bytes = stack_bytes_of(&attributes);
        pthread_attr_destroy(&attributes);
    }
    has_key = threads_are_there() && pthread_key_create(&at_end, ended) == 0;
}

static void sample_this_thread(struct thread *record)
{
    /* Without a key nobody would end the timer. */
    if (has_key && pthread_setspecific(at_end, record) == 0) {
        timer_start(record);
        return;
    }
    log_thread_ended();
    record_free(record);
    if (ring_is_attached())
        ring_count_thread(false);
}

/* At the end of the first thread's stack is the program's name; the kernel lets the stack grow to the limit. */
static void note_first_stack(struct thread *record)
{
    uint64_t high = getauxval(AT_EXECFN), limit = os_limit(RLIMIT_STACK);
    if (os_thread() == os_process() && high)
        note_stack(record, high, limit < MAX_FIRST ? limit : MAX_FIRST);
}

void create_first_thread(void)
{
    struct thread *record = record_new(&threads, (struct task){0});
    if (record) {
        note_first_stack(record);
        log_thread_began(record, record->stack_low, record->stack_high, NULL);
    }
    if (record && !threads_are_there())
        timer_start(record);
    else if (record)
        sample_this_thread(record);
}

static void *thread_main(void *argument)
{
    struct thread *record = argument;
    struct task program = record->record.task;
    size_t bytes = record->stack_high;
    record->stack_high = 0;
    note_stack(record, (uint64_t)(uintptr_t)__builtin_frame_address(0), bytes);
    void *own;
    memcpy(&own, &program.function, sizeof own);
    log_thread_began(record, 0, bytes, own);
    sample_this_thread(record);
    return task_run(program);
}

/* The function that a new thread is for, behind this library's: for libraries that treat threads by it. */
PUBLIC void *numaexplain_function_of(void *function, void *argument)
{
    void *own, *program;
    void *(*begin)(void *) = thread_main;
    memcpy(&own, &begin, sizeof own);
    if (function != own)
        return function;
    memcpy(&program, &((struct record *)argument)->task.function, sizeof program);
    return program;
}

static struct thread *start_of(const pthread_attr_t *attributes, struct task task)
{
    struct thread *record = timers_are_wanted() || log_is_attached() ? record_new(&threads, task) : NULL;
    /* Its size, until the thread knows where it is. */
    if (record)
        record->stack_high = stack_bytes_of(attributes);
    return record;
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                          void *argument)
{
    library_begin(environ);
    if (!NEXT(pthread_create))
        return EAGAIN;
    struct thread *record = start_of(attributes, (struct task){function, argument, false});
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
    struct thread *record = start_of(NULL, (struct task){(void *(*)(void *))(void (*)(void))function, argument, true});
    if (!record)
        return NEXT(thrd_create)(thread, function, argument);
    int error = NEXT(thrd_create)(thread, (thrd_start_t)(void (*)(void))thread_main, record);
    if (error != thrd_success)
        record_free(record);
    return error;
}
