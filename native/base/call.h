/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* System calls without the C library: errno and thread-local storage are not touched, no thread is cancelled there, and no
 * other library stands in for them. So they may be made where a thread starts, between fork and exec, and in a handler
 * whatever it interrupted. */
#ifndef CALL_H
#define CALL_H

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of a set of signals, as the kernel has it. */
enum { KERNEL_SET_BYTES = 8 };

/* Like syscall(), but returns the negative error. */
static inline long call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
#else
    /* libnumaplace makes no call in a handler of its own, so thread-local storage is there. */
    int before = errno;
    long result = syscall(number, a, b, c, d, e, f);
    result = result == -1 ? -errno : result;
    errno = before;
    return result;
#endif
}

#define CALL_6(number, a, b, c, d, e, f, ...)                                                                          \
    call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL(...) CALL_6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* The result of a call that maps memory; NULL if it failed. */
static inline void *memory_of(long result)
{
    return result < 0 && result > -4096 ? NULL : (void *)result;
}

#endif
