/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program that runs with an old C library as well: it has none of this system's start files, and asks
 * for functions as they were. Status 0 if its thread and itself are each on a CPU of their own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef OLDEST
AS_IN(OLDEST, pthread_create);
AS_IN(OLDEST, pthread_join);
#endif

static int (*core)(void);

static void *look(void *other)
{
    *(int *)other = core();
    return NULL;
}

void begin(void)
{
    pthread_t thread;
    int other = -1;
    *(void **)&core = dlsym(RTLD_DEFAULT, "numaplace_core");
    if (!core || pthread_create(&thread, NULL, look, &other) || pthread_join(thread, NULL))
        exit(2);
    printf("glibc %s: a thread on CPU %d, the main thread on %d\n", gnu_get_libc_version(), other, core());
    exit(other < 0 || core() < 0 || other == core());
}

/* The stack is aligned as functions expect it. */
__asm__(".globl _start\n_start:\n"
#if defined(__x86_64__)
        "xor %ebp, %ebp\nand $-16, %rsp\ncall begin\nhlt\n"
#elif defined(__aarch64__)
        "b begin\n"
#endif
);
