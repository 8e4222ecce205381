/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "next.h"
#include "base/newer.h"
#include <dlfcn.h>

#define NEXT_TEXT(name) #name,
static const char *const NAMES[] = {NEXT_FUNCTIONS(NEXT_TEXT)};

void *_Atomic next_functions[NEXT_COUNT];

void *next_function(enum next number)
{
    void *function = atomic_load_explicit(&next_functions[number], memory_order_relaxed);
    if (!function) {
        function = dlsym(RTLD_NEXT, NAMES[number]);
        atomic_store(&next_functions[number], function);
    }
    return function;
}

void next_begin(void)
{
    for (int number = 0; number < NEXT_COUNT; number++)
        next_function(number);
}
