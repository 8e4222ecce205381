/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "calls.h"
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

CALLS(NEXT_DEFINE)

/* No function here minds arguments that the caller did not give. Without a filter's rules the kernel is only asked
 * whether it has filters. */
PUBLIC int prctl(int option, ...)
{
    va_list rest;
    va_start(rest, option);
    unsigned long a = va_arg(rest, unsigned long), b = va_arg(rest, unsigned long);
    unsigned long c = va_arg(rest, unsigned long), d = va_arg(rest, unsigned long);
    va_end(rest);
    if (option == PR_SET_SECCOMP && (a == SECCOMP_MODE_STRICT || b))
        library_is_filtered();
    return NEXT(prctl)(option, a, b, c, d);
}

PUBLIC long syscall(long number, ...)
{
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_seccomp && ((a == SECCOMP_SET_MODE_STRICT && !b && !c) || (a == SECCOMP_SET_MODE_FILTER && c)))
        library_is_filtered();
    return library_leaves_out(number, a, b, c) ? 0 : NEXT(syscall)(number, a, b, c, d, e, f);
}

/* The C library's function takes the address only with MREMAP_FIXED or MREMAP_DONTUNMAP. */
PUBLIC void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *where = va_arg(rest, void *);
    va_end(rest);
    NEXT_OR(MAP_FAILED, mremap);
    return library_remap(next, old, old_bytes, bytes, flags, where, __builtin_frame_address(0));
}

PUBLIC void _exit(int status)
{
    library_end();
    for (;;)
        NEXT(_exit)(status);
}

PUBLIC void _Exit(int status)
{
    _exit(status);
}

__attribute__((destructor)) static void unloaded(void)
{
    library_end();
}
