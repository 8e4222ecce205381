/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program that runs with an old C library as well: it has none of this system's start files, and asks
 * for functions as they were. Status 0 if its thread and itself are each on a CPU of their own; with
 * ALONE it has no thread, and not the library for them. */
#define _GNU_SOURCE
#include <gnu/libc-version.h>
#include <numaplace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#pragma weak numaplace_core

#ifdef OLDEST
AS_IN(OLDEST, pthread_create);
AS_IN(OLDEST, pthread_join);
#endif

#ifdef ALONE
static int other_core(void)
{
    return -2;
}
#else
static void *look(void *other)
{
    *(int *)other = numaplace_core();
    return NULL;
}

static int other_core(void)
{
    pthread_t thread;
    int other = -1;
    return pthread_create(&thread, NULL, look, &other) || pthread_join(thread, NULL) ? -1 : other;
}
#endif

void begin(void)
{
    if (!numaplace_core)
        exit(2);
    int other = other_core();
    printf("glibc %s: a thread on CPU %d, the main thread on %d\n", gnu_get_libc_version(), other,
           numaplace_core());
    exit(other != -2 && (other < 0 || numaplace_core() < 0 || other == numaplace_core()));
}

/* The stack is aligned as functions expect it. */
__asm__(".globl _start\n_start:\n"
#if defined(__x86_64__)
        "xor %ebp, %ebp\nand $-16, %rsp\ncall begin\nhlt\n"
#elif defined(__aarch64__)
        "b begin\n"
#endif
);
