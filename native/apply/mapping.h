/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory that the program maps itself, and the object of an address. */
#ifndef MAPPING_H
#define MAPPING_H

#include "cure.h"

/* The object whose memory overlaps these addresses, or NULL. */
struct object *object_at(uintptr_t from, size_t bytes);

/* Counts on which nodes the mappings of an object are. */
void mapping_sample(struct object *object);

void mapping_lock(void (*function)(struct lock *));

#endif
