/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Programs that were built with a sanitizer of memory or threads: it has to know all blocks, and may have to begin first. */
#ifndef SANITIZED_H
#define SANITIZED_H

#include <stdbool.h>

extern void __asan_init(void) __attribute__((weak));
extern void __hwasan_init(void) __attribute__((weak));
extern void __msan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

static inline bool is_sanitized(void)
{
    return __asan_init || __hwasan_init || __msan_init || __tsan_init;
}

#endif
