/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "base/allocator.h"
#include "base/begin.h"
#include "base/calls.h"
#include "base/newer.h"
#include "functions.h"
#include "large.h"
#include "lists.h"
#include "mapping.h"
#include "modules.h"
#include "pages.h"
#include "policy.h"
#include "pool.h"
#include "sanitized.h"
#include "sites.h"
#include "space.h"
#include "stack.h"
#include <dlfcn.h>
#include <pthread.h>

FUNCTIONS(NEXT_DEFINE)

/* From the outermost to the innermost. */
static void all_locks(void (*function)(struct lock *))
{
    modules_lock(function);
    mapping_lock(function);
    pool_lock(function);
    large_lock(function);
    space_lock(function);
}

static void before_fork(void)
{
    all_locks(lock_really);
    holds_all_locks = true;
}

static void after_fork(void)
{
    if (!holds_all_locks)
        return;
    holds_all_locks = false;
    all_locks(unlock_really);
}

static atomic_bool has_ended;

/* Memory and its policies are inherited. */
static void begin_child(void)
{
    after_fork();
    pool_forget();
    large_forget();
    atomic_store(&has_ended, false);
}

static bool has_blocks(void)
{
    for (size_t i = 0; i < cure.object_count; i++)
        if (cure.object[i].kind == OF_BLOCKS)
            return true;
    return false;
}

void library_prepare(char **environment)
{
    MALLOC_FAMILY(NEXT_LOOK_UP)
    FUNCTIONS(NEXT_LOOK_UP)
    CALLS(NEXT_LOOK_UP)
    stack_begin();
    /* What was not found is no error of the program. */
    if (NEXT(dlerror))
        NEXT(dlerror)();
    if (!cure_begin(environment)) {
        sites_stop();
        return;
    }
    if (is_sanitized()) {
        count_up(&cure.table->header.stepped_aside, 1);
        cure.table = NULL;
        sites_stop();
        return;
    }
    policy_begin();
    if (has_blocks()) {
        space_begin();
        lists_begin();
    }
    pthread_atfork(before_fork, after_fork, NULL);
    library_follow(begin_child);
    sites_stop();
    modules_look();
}

void library_is_filtered(void)
{
    if (cure.table && !atomic_exchange(&cure.is_filtered, true))
        count_up(&cure.table->header.filtered, 1);
}

void library_end(void)
{
    if (!cure.table)
        return;
    /* Not in a child by vfork, which ends before its parent goes on. A filter may forbid the question. */
    if ((!cure.is_filtered && !library_is_of_process()) || atomic_exchange(&has_ended, true))
        return;
    for (size_t i = 0; i < cure.object_count; i++) {
        struct object *object = &cure.object[i];
        const struct module *module = &cure.module[object->module];
        if (object->kind == OF_VARIABLE && module->is_loaded)
            pages_add(module->bias + object->address, object->bytes);
        large_sample(object);
        pool_sample(object);
        mapping_sample(object);
        pages_ask(object);
    }
}
