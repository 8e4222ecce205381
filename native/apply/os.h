/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The system calls that only this library makes. None changes errno or allocates. */
#ifndef APPLY_OS_H
#define APPLY_OS_H

#include "base/os.h"
#include "table.h"
#include <stdbool.h>

/* Nodes as the kernel takes them. */
struct nodes {
    unsigned long bits[MAX_NODES / 64];
};

/* CPUs of a mask, as many as any kernel has. */
struct cpus {
    unsigned long bits[8192 / 64];
};

size_t os_page_bytes(void);

/* Sets the memory policy of pages, and moves those that are there if `moves`. Returns 0 or the error. */
int os_set_policy(uintptr_t from, size_t bytes, int mode, const struct nodes *nodes, bool moves);
/* Advice about memory, as madvise(2) takes it. Returns 0 or the error. */
int os_advise(uintptr_t from, size_t bytes, int advice);
/* The node of each page, or a negative error. False if the kernel tells none. */
bool os_nodes_of(void **pages, size_t count, int *nodes);

/* The node of the CPU on which the thread runs; 0 if that is unknown. */
unsigned os_node(void);
/* The mask of the calling thread. Returns 0 or the error. */
int os_mask(struct cpus *mask);
int os_set_mask(const struct cpus *mask);

/* New memory at an address where nothing is yet. NULL if there is none; `*is_taken` then tells whether others have the address. */
void *os_map_at(uintptr_t address, size_t bytes, bool *is_taken);
/* Bytes of memory that are free. */
size_t os_free_memory(void);
/* How many mappings a process may have. */
size_t os_most_mappings(void);

/* Sleeps while the word has this value, for at most 1 ms. */
void os_wait(_Atomic uint32_t *word, uint32_t value);
/* Writes to standard error, or not. */
void os_say(const char *text, size_t length);

#endif
