/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions behind a library's own of the same names: another preloaded library's or the C library's. */
#ifndef NEXT_H
#define NEXT_H

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

/* Of a library's function that programs call in place of the one behind it. */
#define PUBLIC __attribute__((visibility("default")))

struct next {
    const char *name;
    void *_Atomic function; /* NULL: not looked up yet, or there is none */
};

#define NEXT_DECLARE(name) extern struct next next_##name __attribute__((visibility("hidden")));
#define NEXT_DEFINE(name) struct next next_##name = {#name, NULL};
/* Before handlers call it, or children that share their parent's memory. */
#define NEXT_LOOK_UP(name) next_function(&next_##name);

/* NULL if there is none. */
#define NEXT(name) ((__typeof__(&name))next_function(&next_##name))

/* The same as `next`; where there is none, the function fails. */
#define NEXT_OR(otherwise, name)                                                                                       \
    __typeof__(&name) next = NEXT(name);                                                                               \
    if (!next)                                                                                                         \
    return errno = ENOSYS, otherwise

void *next_function(struct next *next);

#endif
