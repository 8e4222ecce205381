/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Detects that a program binds its threads itself: processes that they start then inherit that mask. */
#define _GNU_SOURCE
#include "base/begin.h"
#include "base/next.h"
#include "create.h"
#include "libraries.h"
#include "settings.h"
#include "thread.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>

static NEXT_DEFINE(pthread_setaffinity_np)

/* The calling thread has bound itself by a call from this address. */
static void note(void *caller)
{
    if (!settings()->active || !library_is_of_process())
        return;
    if (owner_of(caller) == OPENMP_OF_GCC)
        thread_runtime_binds();
    else
        thread_was_bound();
}

PUBLIC int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t *mask)
{
    int error = os_set_mask_of(thread, bytes, mask);
    if (error == 0 && (thread == 0 || thread == os_thread()))
        note(__builtin_return_address(0));
    if (error)
        errno = error;
    return error ? -1 : 0;
}

/* GCC's OpenMP binds every thread of the program that begins a team to its first place: all of them would be on one CPU. Those beside
 * the main thread stay where this library has them. */
static bool is_first_place_of_all(void *caller)
{
    return settings()->active && library_is_of_process() && !os_is_main_thread() && owner_of(caller) == OPENMP_OF_GCC;
}

PUBLIC int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *mask)
{
    __typeof__(&pthread_setaffinity_np) set = NEXT(pthread_setaffinity_np);
    void *caller = __builtin_return_address(0);
    bool is_own = pthread_equal(thread, pthread_self());
    if (is_own && is_first_place_of_all(caller)) {
        thread_runtime_binds();
        create_has_several_teams();
        return 0;
    }
    int error = set ? set(thread, bytes, mask) : ENOSYS;
    if (error == 0 && is_own)
        note(caller);
    return error;
}
