/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Everything that is asked of the kernel. A function gives 0 or a positive errno, unless it says
 * otherwise; none allocates, locks or changes errno, so all may be called where a thread begins,
 * between fork and exec, and in signal handlers. */
#ifndef OS_H
#define OS_H

#include "cpus.h"
#include <stdint.h>
#include <sys/types.h>

enum { MAX_PAGES = 64 };

/* The memory policy of a thread: a mode of set_mempolicy(2) with its flags, and nodes. */
struct policy {
    int mode;
    unsigned long nodes[MAX_NODES / WORD];
};

struct policy policy_of_node(int mode, int node);

/* Whether all memory is to be where this node is not. */
bool policy_forbids(const struct policy *policy, int node);

/* Whether memory comes from the node of the CPU that touches it first. */
bool policy_is_local(const struct policy *policy);

/* The mask of a thread of this process; 0 is the calling one. */
int os_mask(pid_t thread, struct cpus *mask);
int os_set_mask(pid_t thread, const struct cpus *mask);
/* The same with a mask of any length. */
int os_set_mask_of(pid_t thread, size_t bytes, const void *mask);

/* The policy of the calling thread. */
int os_policy(struct policy *policy);
int os_set_policy(const struct policy *policy);

/* Pages that are touched first in this range come from the node while it has some. Both ends are
 * whole pages; pages that are there stay where they are. */
int os_prefer(uintptr_t from, uintptr_t to, int node);

/* The nodes of at most MAX_PAGES pages: a negative value for one that is not there. */
int os_where(void *const *pages, int count, int *nodes);

/* Moves at most MAX_PAGES pages of this process to the node. Pages that others share and those
 * that cannot move stay where they are, without an error. */
int os_move(void *const *pages, int count, int node);

/* Fresh memory, filled with zeros, apart from malloc's; NULL if there is none. */
void *os_memory(size_t bytes);
void os_memory_end(void *memory, size_t bytes);

uintptr_t os_page_bytes(void);
int os_cpu(void);
pid_t os_process(void);
pid_t os_thread(void);
bool os_is_main_thread(void);

/* A byte of a file, locked for this process among all others until it unlocks or ends. EAGAIN if
 * another process has it. */
int os_lock(int file, long byte);
void os_unlock(int file, long byte);

/* Whether the descriptor is open for reading, on a file that begins with these bytes (at most 64). */
bool os_begins_with(int file, const char *bytes, size_t length);
/* Identity of an open file, so that another one under the same number is noticed. */
struct identity {
    dev_t device;
    ino_t number;
};
int os_identity(int file, struct identity *identity);

/* One line for people on standard error; nobody is there to read it: nothing happens. */
void os_say(const char *line, size_t length);

/* Writes the line into every FIFO in the folder whose name ends in ".fifo" and that somebody reads, and
 * counts those that took it. EPERM if the folder is another user's, or others may write to it. This one
 * allocates. */
int os_tell_fifos(const char *folder, const char *line, size_t length, int *count);
uid_t os_user(void);

#endif
