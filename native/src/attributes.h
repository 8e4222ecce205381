/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Attributes of new threads: read from the caller's, which stay as they are, and made afresh. */
#ifndef ATTRIBUTES_H
#define ATTRIBUTES_H

#include "cpus.h"
#include <pthread.h>
#include <stdbool.h>

/* What the creator asks for. */
struct wish {
    const pthread_attr_t *attributes; /* NULL for the process's default ones */
    bool has_mask;                    /* an affinity was set explicitly */
    struct cpus mask;
    void *stack;                      /* memory of the caller's, or NULL */
    size_t stack_bytes;
};

/* Reads it. False if that is not possible. */
bool wish_of(const pthread_attr_t *attributes, struct wish *wish);

/* Fresh attributes, equal to the wish's but with this mask, if it is not NULL. 0 or an errno; to be
 * destroyed after 0. */
int attributes_make(pthread_attr_t *fresh, const struct wish *wish, const struct cpus *mask);

#endif
