/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A CPU-time timer for each thread. */
#ifndef TIMERS_H
#define TIMERS_H

#include "thread.h"
#include <stdbool.h>

/* Reads the rate from the environment. */
void timers_begin(char **environment, int number);

/* The calling thread is sampled from now on, until its end. */
void timer_start(struct thread *record);

/* Ends a thread's timer. Any thread of the process may call it. */
void timer_stop(struct thread *record);

/* In a forked child, which has no timers. */
void timers_forget(void);

/* Whether threads get timers. */
bool timers_are_wanted(void);

/* Ends all of this process, for good. */
void timers_stop_all(int reason);

#endif
