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
/* Adds to the end of a regular file, which is made if there is none; 0, or the negative error. */
int os_append(const char *path, const char *text);

/* A memory file without a path; the descriptor, or the negative error. */
int os_memory_file(const char *name, uint64_t bytes);
/* That of this name of another process; the descriptor, or the negative error. */
int os_memory_file_of(pid_t process, const char *name);
/* Makes it larger, unless it is; 0, or the negative error. -EFBIG if a limit of the process is lower. */
int os_grow(int file, uint64_t bytes);
/* The limit on the size of files. */
uint64_t os_file_limit(void);
/* A number for the file, while it is open: the program may close the descriptor, and open another file. */
uint64_t os_identity(int file);
/* Takes memory for a part of this file, so that writing to it later cannot fail; 0, or the negative error. */
int os_take(int file, uint64_t identity, uint64_t offset, uint64_t bytes);
void *os_map_file(int file, uint64_t bytes);
void os_close(int file);

/* A process of this machine is the first one that listens at this name, until it ends: 0, or the negative error, -EADDRINUSE if
 * there is one. The descriptor stays open. */
int os_be_first(const char *name);
/* The process that is; 0 if there is none, or the negative error. -EPERM if it is another user's. */
long os_first(const char *name);

/* Sleeps while the lower half of the word is this, for at most so long; the word may be other processes'. */
void os_sleep_on(const void *word, uint32_t value, uint64_t nanoseconds);
void os_wake_all(const void *word);
void os_sleep(uint64_t nanoseconds);

#endif
