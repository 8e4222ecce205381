/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Programs that were built with sanitizers: what those ask of a library that is loaded first. */
#include <stddef.h>

#define UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

/* The shared AddressSanitizer, which programs of GCC have, ends a program that loads another library
 * before it. It asks programs for their options by this name, and finds ours unless the program has
 * its own. What goes wrong elsewhere cannot here: the calls of this library end in the sanitizer's. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

UNSANITIZED const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}

/* ThreadSanitizer begins in the program, which is after this library. Its functions stand in for
 * strcmp and others and cannot be called before. */
extern void __tsan_init(void) __attribute__((weak));

UNSANITIZED __attribute__((constructor(101))) static void begin_before_us(void)
{
    if (__tsan_init)
        __tsan_init();
}
