/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "allocation.h"
#include "base/allocator.h"
#include "base/begin.h"
#include "base/calls.h"
#include "base/newer.h"
#include "chain.h"
#include "create.h"
#include "functions.h"
#include "processes.h"
#include "ring.h"
#include "sample.h"
#include "signals.h"
#include "timers.h"

FUNCTIONS(NEXT_DEFINE)

void library_prepare(char **environment)
{
    /* Some are called in handlers, and in children that share their parent's memory. */
    MALLOC_FAMILY(NEXT_LOOK_UP)
    FUNCTIONS(NEXT_LOOK_UP)
    CALLS(NEXT_LOOK_UP)
    /* The log says when the program began: behind the time of the ring, which says that it was executed. */
    bool is_sampled = ring_attach(environment), is_logged = log_begin(environment);
    if (is_logged || is_sampled)
        processes_begin();
    int number = is_sampled ? signals_begin() : 0;
    if (number) {
        sample_begin(environment);
        timers_begin(environment, number);
    }
    if (!number && !is_logged)
        return;
    newer_begin();
    create_begin();
    create_first_thread();
    if (number)
        chain_begin(environment);
}
