/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The system calls that only this library makes. */
#ifndef MPI_OS_H
#define MPI_OS_H

#include "base/os.h"
#include <stdbool.h>

/* Takes memory for a part of a file on a memory file system, so that writing to it later cannot fail. */
bool os_reserve(const char *path, size_t offset, size_t bytes);
/* The CPUs that this process may use, as the kernel's bits; zeros behind what the kernel knows. */
void os_mask_of_process(void *bits, size_t bytes);
/* Reads a number of another process; 0, or the negative error. */
long os_read_other(pid_t process, uint64_t address, uint64_t *number);
pid_t os_parent(void);
/* The parent of a process, and its name, of 16 bytes; 0 if there is none. */
pid_t os_parent_of(pid_t process, char name[16]);
void os_yield(void);
/* To standard error. */
void os_print(const char *text);

#endif
