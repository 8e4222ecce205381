/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Attributes of new threads: reads the caller's, which are not changed, and makes copies with another
 * mask. */
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H

#include "cpus.h"
#include <pthread.h>
#include <stdbool.h>

/* What the creator of a thread requests. */
struct request {
    const pthread_attr_t *attributes; /* NULL: the process's defaults */
    bool has_mask;                    /* an affinity was set explicitly */
    struct cpus mask;
    void *stack;                      /* the caller's memory, or NULL */
    size_t stack_bytes;
};

/* Reads them. False if that is not possible. */
bool request_of(const pthread_attr_t *attributes, struct request *request);

/* New attributes, equal to the request's but with this mask, if it is not NULL. Returns 0 or an errno;
 * after 0 the caller must destroy them. */
int attributes_copy(pthread_attr_t *fresh, const struct request *request, const struct cpus *mask);

#endif
