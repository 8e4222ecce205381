/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates threads so that what the C library writes into a new stack, the thread control block and
 * thread-local storage, is on the new thread's node. */
#ifndef NEAR_H
#define NEAR_H

#include "starts.h"
#include <pthread.h>

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Before the first of the others. */
void near_begin(void);

/* Calls `create` with these attributes, which bind to `mask`. Where the start has no node, or one that
 * gives no memory, it is as the C library does it. */
int near_create(create_function *create, pthread_t *thread, const pthread_attr_t *attributes,
                void *(*function)(void *), struct start *start, const struct cpus *mask);

/* A placed thread ends and leaves its stack to the C library. */
void near_stack_left(void);

/* In a forked child. */
void near_forget(void);

#endif
