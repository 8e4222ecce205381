/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "processes.h"
#include "allocation.h"
#include "base/begin.h"
#include "base/calls.h"
#include "create.h"
#include "os.h"
#include "ring.h"
#include "thread.h"
#include "timers.h"

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

/* The observer takes its samples while there is its memory. */
void library_end(void)
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

void library_is_filtered(void)
{
    log_stop();
    if (ring_is_attached())
        timers_stop_all(FILTERED);
}

bool library_leaves_out(long number, long a, long b, long c)
{
    (void)number, (void)a, (void)b, (void)c;
    return false;
}
