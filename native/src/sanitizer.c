/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The shared AddressSanitizer, which programs of GCC have, ends a program that loads another library
 * first. It asks programs for their options by this name, and finds ours unless the program has its
 * own: what stands in front of it is only this library, which calls the sanitizer's pthread_create. */

__attribute__((visibility("default"))) const char *__asan_default_options(void);

#if defined(__GNUC__)
__attribute__((no_sanitize("address", "undefined", "thread")))
#endif
const char *__asan_default_options(void)
{
    return "verify_asan_link_order=0";
}
