/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that load libraries, and some that are often called behind them. Each jumps to the C library's, which so sees the program's
 * call: its search path and namespace are those of the caller. */
#define _GNU_SOURCE
#include "base/begin.h"
#include "functions.h"
#include "modules.h"
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

static __attribute__((noinline)) void is_back(void)
{
    int before = errno;
    modules_follow(HERE);
    errno = before;
}

PUBLIC void *dlopen(const char *file, int mode)
{
    will_change();
    return NEXT(dlopen)(file, mode);
}

PUBLIC void *dlmopen(Lmid_t space, const char *file, int mode)
{
    will_change();
    return NEXT(dlmopen)(space, file, mode);
}

PUBLIC int dlclose(void *library)
{
    is_back();
    will_change();
    return NEXT(dlclose)(library);
}

PUBLIC char *dlerror(void)
{
    is_back();
    return NEXT(dlerror)();
}

PUBLIC int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    library_begin(environ);
    is_back();
    if (!NEXT(pthread_create))
        return EAGAIN;
    return NEXT(pthread_create)(thread, attributes, function, argument);
}
