/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whether memory is short: the limit of the cgroup is near, or programs wait for memory. */
#ifndef ALLOC_PRESSURE_H
#define ALLOC_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>

/* Called before these bytes of new memory are used. It looks at the kernel's files once in many MiB. */
void pressure_look(size_t bytes);

/* What it saw last: free memory is then not kept. */
bool pressure_is_high(void);

#endif
