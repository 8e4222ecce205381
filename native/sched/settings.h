/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef SCHED_SETTINGS_H
#define SCHED_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

/* What the environment says when the process begins. */
struct settings {
    bool is_off;                   /* NUMASCHED=0: all loops are libgomp's */
    bool has_statistics;           /* NUMASCHED_STATS=1 */
    uint64_t chunk;                /* NUMASCHED_CHUNK: iterations of a chunk at least, unless fewer are left; 0: as the loop says */
};

const struct settings *settings(void);

/* A setting that is none is said once, and has no effect. */
void settings_read(char **environment);

#endif
