/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "next.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

struct next next;

static __thread bool is_finding __attribute__((tls_model("initial-exec")));

static const void *library_of(void *function)
{
    Dl_info about;
    /* Before glibc 2.34 a program may be linked without it. */
    return function && &dladdr && dladdr(function, &about) ? about.dli_fbase : NULL;
}

bool next_find(void)
{
    if (is_finding)
        return false;
    int before = errno;
    is_finding = true;
#define FIND(name) found.name = (__typeof__(found.name))dlsym(RTLD_NEXT, #name)
    struct next found = {0};
    FIND(malloc), FIND(calloc), FIND(free), FIND(realloc), FIND(memalign), FIND(aligned_alloc), FIND(posix_memalign);
    FIND(valloc), FIND(pvalloc);
    found.usable = (__typeof__(found.usable))dlsym(RTLD_NEXT, "malloc_usable_size");
    if (library_of((void *)found.usable) != library_of((void *)found.malloc))
        found.usable = NULL;
    is_finding = false;
    errno = before;
    __typeof__(found.malloc) first = found.malloc;
    found.malloc = NULL;
    next = found;
    atomic_thread_fence(memory_order_release);
    next.malloc = first;
    return first != NULL;
}
