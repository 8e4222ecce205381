/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that load libraries, and some that are often called behind them. Each jumps to the C library's, which so sees the program's
 * call: its search path and namespace are those of the caller. */
#define _GNU_SOURCE
#include "base/begin.h"
#include "functions.h"
#include "modules.h"
#include "space.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

/* A jump in place of a call needs no frame. */
#define HERE __builtin_frame_address(0)

static __attribute__((noinline)) void will_change(void)
{
    modules_will_change(HERE);
}

/* With RTLD_DEEPBIND the library would find the C library's free before this one's, and end the process with a block of an object. */
static __attribute__((noinline)) int without_own_scope(int mode)
{
    if (!(mode & RTLD_DEEPBIND) || !cure.table || !space_bytes)
        return mode;
    count_up(&cure.table->header.deep_bindings, 1);
    return mode & ~RTLD_DEEPBIND;
}

static __attribute__((noinline)) void is_back(void)
{
    int before = errno;
    modules_follow(HERE);
    errno = before;
}

PUBLIC void *dlopen(const char *file, int mode)
{
    __typeof__(&dlopen) next = NEXT(dlopen);
    will_change();
    mode = without_own_scope(mode);
    return next ? next(file, mode) : NULL;
}

PUBLIC void *dlmopen(Lmid_t space, const char *file, int mode)
{
    __typeof__(&dlmopen) next = NEXT(dlmopen);
    will_change();
    return next ? next(space, file, mode) : NULL;
}

PUBLIC int dlclose(void *library)
{
    __typeof__(&dlclose) next = NEXT(dlclose);
    is_back();
    will_change();
    return next ? next(library) : -1;
}

PUBLIC char *dlerror(void)
{
    __typeof__(&dlerror) next = NEXT(dlerror);
    is_back();
    return next ? next() : NULL;
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    library_begin(environ);
    is_back();
    if (!NEXT(pthread_create))
        return EAGAIN;
    return NEXT(pthread_create)(thread, attributes, function, argument);
}
