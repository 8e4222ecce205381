/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "next.h"
#include "newer.h"
#include <dlfcn.h>
#include <stdatomic.h>

#define NEXT_TEXT(name) #name,
static const char *const NAMES[] = {NEXT_FUNCTIONS(NEXT_TEXT)};

static void *_Atomic found[NEXT_COUNT];

void *next_function(enum next number)
{
    void *function = atomic_load_explicit(&found[number], memory_order_relaxed);
    if (!function) {
        function = dlsym(RTLD_NEXT, NAMES[number]);
        atomic_store(&found[number], function);
    }
    return function;
}

void next_begin(void)
{
    for (int number = 0; number < NEXT_COUNT; number++)
        next_function(number);
}
