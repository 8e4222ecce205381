/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates threads so that the memory that the C library writes in a new stack (thread control block,
 * thread-local storage) is on the new thread's node. */
#ifndef NEAR_H
#define NEAR_H

#include "starts.h"
#include <pthread.h>

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Called before the other functions. */
void near_begin(void);

/* Calls `create` with these attributes, which bind to `mask`. If the start has no node, or one without
 * memory, it does the same as the C library. */
int near_create(create_function *create, pthread_t *thread, const pthread_attr_t *attributes,
                void *(*function)(void *), struct start *start, const struct cpus *mask);

/* A placed thread ends, and the C library caches its stack. */
void near_stack_cached(void);

/* In a forked child. */
void near_forget(void);

#endif
