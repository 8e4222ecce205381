/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "timers.h"
#include "base/environment.h"
#include "os.h"
#include "ring.h"
#include <string.h>
#include <sys/resource.h>

enum { DEFAULT_RATE = 199, MAX_RATE = 10000 };

static int signal_number;
static uint64_t period;
static clockid_t clock_of_timers = CLOCK_THREAD_CPUTIME_ID;
static _Atomic uint64_t created, allowed = UINT64_MAX;
static atomic_bool stopped;

void timers_begin(char **environment, int number)
{
    const char *clock = environment_find(environment, "NUMA_SAMPLE_CLOCK");
    uint64_t rate = environment_number(environment, "NUMA_SAMPLE_RATE", DEFAULT_RATE);
    signal_number = number;
    period = 1000000000 / (rate == 0 || rate > MAX_RATE ? DEFAULT_RATE : rate);
    /* Also counts while a thread sleeps: shows what an interrupted call does. */
    if (clock && strcmp(clock, "monotonic") == 0)
        clock_of_timers = CLOCK_MONOTONIC;
    /* Each timer takes one of the pending signals that the program may have. */
    uint64_t limit = os_limit(RLIMIT_SIGPENDING);
    if (limit != UINT64_MAX)
        atomic_store(&allowed, limit / 2);
}

bool timers_are_wanted(void)
{
    return ring_is_attached() && !atomic_load_explicit(&stopped, memory_order_relaxed);
}

/* The first period begins at a random time, so that also threads that end before have samples. */
static uint64_t first_expiration(uint64_t thread)
{
    uint64_t mixed = (os_now() ^ thread << 32) * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= mixed >> 29;
    return 1 + mixed * UINT64_C(0xbf58476d1ce4e5b9) % period;
}

void timer_start(struct thread *record)
{
    pid_t thread = os_thread();
    bool is_wanted = timers_are_wanted();
    bool may = is_wanted && atomic_fetch_add(&created, 1) < atomic_load(&allowed);
    /* A filter of the program may forbid these calls. */
    if (may)
        os_usage(&record->usage);
    atomic_store(&record->thread, thread);
    if (!ring_is_attached())
        return;
    record->has_timer =
        may && os_timer_create(clock_of_timers, signal_number, record, thread, &record->timer) == 0;
    ring_count_thread(record->has_timer);
    if (record->has_timer)
        os_timer_set(record->timer, first_expiration((uint64_t)thread), period);
    else if (is_wanted)
        atomic_fetch_sub(&created, 1);
}

void timers_forget(void)
{
    atomic_store(&created, 0);
}

void timer_stop(struct thread *record)
{
    if (!record->has_timer)
        return;
    record->has_timer = false;
    os_timer_delete(record->timer);
    atomic_fetch_sub(&created, 1);
}

static void stop(void *record)
{
    timer_stop(record);
}

void timers_stop_all(int reason)
{
    if (atomic_exchange(&stopped, true))
        return;
    atomic_store(&ring_process()->state, (uint64_t)reason);
    records_each(&threads, stop);
}
