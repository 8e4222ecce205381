/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where policies are refused, as in containers: the kernel allocates a page on the node that touches it first. */
#ifndef TOUCH_H
#define TOUCH_H

#include "cure.h"

/* Pages of one node. */
struct run {
    uintptr_t from, to;
    uint16_t node;
};

/* The runs of an object's parts in memory; returns their number. */
size_t runs_of(const struct object *object, uintptr_t from, size_t bytes, struct run runs[FRACTIONS]);

/* Has the calling thread touch pages on CPUs of their nodes. Returns 0 or an error; ENOMEM where memory would become short. */
int touch_from_nodes(struct object *object, uintptr_t from, size_t bytes, uint16_t node);

#endif
