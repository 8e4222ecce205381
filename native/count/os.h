/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The system calls that only this library makes. */
#ifndef COUNT_OS_H
#define COUNT_OS_H

#include "base/os.h"
#include "base/ticks.h"

/* A page that is zero again in the child of a fork; an ordinary one before Linux 4.14. NULL without memory. */
void *os_allocate_wiped(size_t bytes);
/* The page faults of this process so far. */
uint64_t os_faults(void);
/* Calls `line` for each line of /proc/self/maps. One thread at a time. */
void os_each_mapping(void (*line)(char *text));

#endif
