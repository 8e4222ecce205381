/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* System calls. None allocates. Those that return bool are true on success; errno is not changed. */
#ifndef ALLOC_OS_H
#define ALLOC_OS_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The granularity of `os_map` and all below: the smallest page. */
uintptr_t os_page_bytes(void);

/* Addresses where the kernel puts nothing unless it is told to. */
struct os_window {
    uintptr_t from;
    size_t bytes;
};
struct os_window os_window(void);
/* Whether the addresses of the program are limited. */
bool os_limits_addresses(void);

/* Makes addresses usable, of which none is: zeros that take memory when they are touched. */
enum os_mapped {
    OS_MAPPED,
    OS_NO_MEMORY,   /* a limit is reached */
    OS_OCCUPIED,    /* something else lies there */
};
enum os_mapped os_map(void *from, size_t bytes);
/* Gives addresses back. */
bool os_unmap(void *from, size_t bytes);
/* Drops the content: zeros again. */
bool os_discard(void *from, size_t bytes);
/* The kernel may take the pages when memory is short. Until something is written there, the content is the old one or
 * zeros. */
bool os_offer(void *from, size_t bytes);
/* Asks for huge pages. */
void os_want_huge(void *from, size_t bytes);
/* Moves pages with their policy and advice. */
enum os_moved {
    OS_MOVED,       /* both ranges are usable, and the old one has zeros */
    OS_UNMOVED,     /* the kernel cannot (before Linux 5.7, or if the old range has several mappings): the new range has zeros,
                       without policy or advice, and the old one is as before */
    OS_LOST,        /* nor could the new range be made usable again; the old one is as before */
};
enum os_moved os_move(void *from, void *to, size_t bytes);
/* New pages of this range lie on this node while it has memory. False where policies are refused. */
bool os_prefer(void *from, size_t bytes, unsigned node);

/* The node on which the memory policy of the calling thread, or of all of the process, wants new memory: where the thread runs, or the
 * node that it prefers (so starts a program that is placed: on its first core's). NO_NODE if the policy has another rule. */
#define NO_NODE UINT_MAX
unsigned os_memory_node(void);

/* As set_mempolicy(2): this one sets errno. */
long os_set_policy(int mode, const unsigned long *nodes, unsigned long bits);

/* The number of the highest node that is online, plus one. */
unsigned os_node_count(void);
/* A word that the kernel changes when the calling thread goes to another node, or at least to another CPU; NULL if there
 * is none. */
const _Atomic uint32_t *os_place_word(void);
/* 64 random bits that are the same in each call. */
uint64_t os_secret(unsigned which);
/* Others in each call. */
size_t os_random(void);

/* Reads a small file of the kernel as text; false if it cannot. */
bool os_read(const char *path, char *text, size_t bytes);

/* The number that a text begins with; false for "max" and others. */
static inline bool number_at(const char *text, size_t *number)
{
    *number = 0;
    for (const char *c = text; *c >= '0' && *c <= '9'; c++)
        *number = *number * 10 + (size_t)(*c - '0');
    return *text >= '0' && *text <= '9';
}

/* The pages in memory of this process: calls `found` for each node of each mapping that has some, with the mapping's address
 * and the bytes. False if the kernel does not tell them. */
typedef void os_pages_found(void *context, uintptr_t mapping, unsigned node, uint64_t bytes);
bool os_pages(os_pages_found *found, void *context);

/* The environment, also before the C library knows it; NULL where it cannot be found. */
char **os_environment(void);

/* Time in eighths of a second, from a clock that costs some nanoseconds. */
uint32_t os_eighths(void);

/* Sleeps while the word has the value. */
void os_wait(_Atomic uint32_t *word, uint32_t value);
void os_wake(_Atomic uint32_t *word);

/* Prints on standard error; errors are ignored. */
void os_print(const char *text, size_t length);
_Noreturn void os_abort(void);

#endif
