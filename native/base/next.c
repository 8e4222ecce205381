/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "next.h"
#include <dlfcn.h>

void *next_function(struct next *next)
{
    void *function = atomic_load_explicit(&next->function, memory_order_relaxed);
    if (!function) {
        function = dlsym(RTLD_NEXT, next->name);
        atomic_store(&next->function, function);
    }
    return function;
}
