/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whether memory is short: the limit of the cgroup is near, or programs wait for memory. */
#ifndef ALLOC_PRESSURE_H
#define ALLOC_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called before these bytes of new memory are used. It looks at the kernel's files once in many MiB. */
void pressure_look(size_t bytes);

/* Called when memory becomes free, with the time of `os_eighths`. It looks when that is another one. */
void pressure_look_at(uint32_t now);

/* What was seen last: free memory is then not kept. */
bool pressure_is_high(void);

/* Bytes that all pools together may keep in the cgroup, SIZE_MAX without a limit; the kernel may take what is above. */
size_t pressure_most_kept(void);

#endif
