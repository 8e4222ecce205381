/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The system calls that only this library makes. */
#ifndef SCHED_OS_H
#define SCHED_OS_H

#include "base/os.h"
#include "base/ticks.h"
#include <stdint.h>

/* The CPU on which the calling thread runs; -1 if that is unknown. */
int os_cpu(void);

/* The beginning of a small file, terminated by a zero; how many bytes it has, 0 if it cannot be read. */
size_t os_read(const char *path, char *text, size_t room);

/* Asks for pages of a node where there are any, before they are touched. The first touch decides where this fails. */
void os_prefer_node(void *memory, size_t bytes, int node);

void os_yield(void);

/* Writes to standard error. */
void os_print(const char *text, size_t length);

/* As the loader ends a program that lacks a function. */
_Noreturn void os_end(int status);

static inline void os_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
