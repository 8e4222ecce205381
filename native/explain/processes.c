/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "processes.h"
#include "allocation.h"
#include "base/begin.h"
#include "create.h"
#include "functions.h"
#include "os.h"
#include "ring.h"
#include "thread.h"
#include "timers.h"
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_observed(void)
{
    return ring_is_attached() || log_is_attached();
}

/* Timers are not inherited. */
static void begin_child(void)
{
    if (!is_observed())
        return;
    records_forget(&threads);
    if (ring_is_attached()) {
        timers_forget();
        ring_begin_child();
    }
    if (log_is_attached())
        log_begin_child();
    create_first_thread();
}

void processes_begin(void)
{
    library_follow(begin_child);
}

void processes_end(void)
{
    /* Not in a child by vfork, which ends before its parent goes on. */
    if (!is_observed() || !library_is_of_process())
        return;
    if (ring_is_attached()) {
        ring_await();
        ring_end();
    }
    if (log_is_attached())
        log_end();
}

PUBLIC void _exit(int status)
{
    processes_end();
    for (;;)
        NEXT(_exit)(status);
}

PUBLIC void _Exit(int status)
{
    _exit(status);
}

/* A filter may end the process for a call that only the handler makes. */
static void filters_change(void)
{
    log_stop();
    if (ring_is_attached())
        timers_stop_all(FILTERED);
}

/* Neither function minds arguments that the caller did not give. */
PUBLIC int prctl(int option, ...)
{
    va_list rest;
    va_start(rest, option);
    unsigned long a = va_arg(rest, unsigned long), b = va_arg(rest, unsigned long);
    unsigned long c = va_arg(rest, unsigned long), d = va_arg(rest, unsigned long);
    va_end(rest);
    if (option == PR_SET_SECCOMP)
        filters_change();
    return NEXT(prctl)(option, a, b, c, d);
}

PUBLIC long syscall(long number, ...)
{
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_seccomp && (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER))
        filters_change();
    return NEXT(syscall)(number, a, b, c, d, e, f);
}
