/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The memory policy of an object, and its pages: set on memory, or touched from its nodes where policies are refused. */
#ifndef POLICY_H
#define POLICY_H

#include "cure.h"

/* Finds out whether policies are refused. */
void policy_begin(void);

/* How many mappings the memory of a block of this object needs. */
size_t policy_mappings(const struct object *object);

/* False behind a filter of system calls, and where it was refused again and again. */
bool policy_can_be_set(const struct object *object);

/* Gives memory the policy of an object: that of all of it, or that of `node` where it is for one node only. `again` if the memory was in
 * use before: its pages are moved, and fractions without a policy lose theirs. Counts what is refused; false then. */
bool policy_set(struct object *object, uintptr_t from, size_t bytes, uint16_t node, bool again);

/* Counts what has the policy now, and says so the first time. */
void policy_count(struct object *object, uint64_t blocks, uint64_t bytes);

#endif
