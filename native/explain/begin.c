/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "begin.h"
#include "allocation.h"
#include "base/allocator.h"
#include "chain.h"
#include "create.h"
#include "functions.h"
#include "processes.h"
#include "ring.h"
#include "sample.h"
#include "signals.h"
#include "timers.h"
#include <unistd.h>

FUNCTIONS(NEXT_DEFINE)

static void begin(char **environment)
{
    /* Some are called in handlers, and in children that share their parent's memory. */
    MALLOC_FAMILY(NEXT_LOOK_UP)
    FUNCTIONS(NEXT_LOOK_UP)
    bool is_logged = log_begin(environment);
    int number = ring_attach(environment) ? signals_begin() : 0;
    if (number) {
        sample_begin(environment);
        timers_begin(environment, number);
    }
    if (!number && !is_logged)
        return;
    processes_begin();
    create_begin();
    create_first_thread();
    if (number)
        chain_begin(environment);
}

void library_begin(char **environment)
{
    enum { NOT_YET, NOW, DONE };
    static atomic_int state;
    int expected = NOT_YET;
    if (atomic_load_explicit(&state, memory_order_acquire) == DONE || !environment)
        return;
    if (atomic_compare_exchange_strong(&state, &expected, NOW)) {
        begin(environment);
        atomic_store_explicit(&state, DONE, memory_order_release);
    }
}

__attribute__((constructor)) static void loaded(int count, char **words, char **environment)
{
    (void)count;
    (void)words;
    library_begin(environment ? environment : environ);
}

__attribute__((destructor)) static void unloaded(void)
{
    processes_end();
}
