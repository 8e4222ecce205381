/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The system calls that only this library makes. Functions return 0 or a positive errno unless stated
 * otherwise; none allocates, locks or changes errno, so all may be called where a thread starts, between
 * fork and exec, and in signal handlers. */
#ifndef PLACE_OS_H
#define PLACE_OS_H

#include "base/os.h"
#include "cpus.h"

enum { MAX_PAGES = 64 };

/* The memory policy of a thread: a mode of set_mempolicy(2) with its flags, and nodes. */
struct policy {
    int mode;
    unsigned long nodes[MAX_NODES / WORD];
};

struct policy policy_of_node(int mode, int node);

/* Whether the policy excludes this node. */
bool policy_forbids(const struct policy *policy, int node);

/* Whether it is first touch. */
bool policy_is_local(const struct policy *policy);

/* The mask of a thread of this process; 0 is the calling one. */
int os_mask(pid_t thread, struct cpus *mask);
int os_set_mask(pid_t thread, const struct cpus *mask);
/* The same for a mask of any length. */
int os_set_mask_of(pid_t thread, size_t bytes, const void *mask);

/* The policy of the calling thread. */
int os_policy(struct policy *policy);
int os_set_policy(const struct policy *policy);
/* The same, and an allocator that wants to know is told: the thread keeps it. */
int os_keep_policy(const struct policy *policy);

/* Prefers the node for new pages in this range. Both ends are page-aligned; existing pages are not moved. */
int os_prefer(uintptr_t from, uintptr_t to, int node);

/* The nodes of at most MAX_PAGES pages; negative for a page that is not present. */
int os_nodes(void *const *pages, int count, int *nodes);

/* Moves at most MAX_PAGES pages of this process to the node. Shared pages and those that cannot be moved
 * are not, without an error. */
int os_move(void *const *pages, int count, int node);

int os_cpu(void);
bool os_is_main_thread(void);

/* Locks a byte of a file for this process until it unlocks it or ends. EAGAIN if another process has it. */
int os_lock(int file, long byte);
void os_unlock(int file, long byte);

/* Whether the descriptor is open for reading, on a file that begins with these bytes (at most 64). */
bool os_begins_with(int file, const char *bytes, size_t length);
/* The identity of an open file, to detect another one with the same descriptor. */
struct identity {
    dev_t device;
    ino_t number;
};
int os_identity(int file, struct identity *identity);

/* Prints one line on standard error; errors are ignored. */
void os_print(const char *line, size_t length);

#endif
