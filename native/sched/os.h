/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The system calls that only this library makes. */
#ifndef SCHED_OS_H
#define SCHED_OS_H

#include "base/os.h"
#include "base/ticks.h"
#include <stdint.h>

/* The CPU on which the calling thread runs; -1 if that is unknown. */
int os_cpu(void);

void os_yield(void);

/* Writes to standard error. */
void os_print(const char *text, size_t length);

/* As the loader ends a program that lacks a function. */
_Noreturn void os_end(int status);

#endif
