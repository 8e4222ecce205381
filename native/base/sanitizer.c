/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Support for programs that were built with sanitizers. */
#include <stddef.h>

#define UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

/* The shared AddressSanitizer of GCC ends a program that loads another library before it. It calls this
 * function for the program's options, and finds ours unless the program has its own. Being first is safe
 * here: this library's calls go through the sanitizer. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

UNSANITIZED const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}

/* ThreadSanitizer starts in the program, after this library. It replaces strcmp and other functions, which
 * cannot be called before. */
extern void __tsan_init(void) __attribute__((weak));

UNSANITIZED __attribute__((constructor(101))) static void begin_before_us(void)
{
    if (__tsan_init)
        __tsan_init();
}
