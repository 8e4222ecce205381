/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Settings of the allocator: NUMALLOC_* in the environment, read when the first block is asked for. */
#ifndef ALLOC_SETTINGS_H
#define ALLOC_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum profile { NUMA, UMA, LOWMEM };
enum huge { HUGE_AUTO, HUGE_ALWAYS, HUGE_NEVER };

struct settings {
    int profile;      /* enum profile */
    int huge;         /* enum huge */
    long keep;        /* MiB of free memory that each pool keeps, beside a share of what is in use */
    long offer;       /* MiB above which free memory is dropped at once */
    long stats;       /* print counts at the end */
    long check;       /* verify all lists at each step */
    long fail_after;  /* for tests: the number of mappings that succeed; -1 is all */
};

extern struct settings settings;

/* Reads the environment and says what it does not understand. */
void settings_read(char **environment);

/* How many free units with pages a pool keeps, and how many it has before it drops them, when this many were lately in use
 * at once beside those that are now. */
uint32_t settings_units_kept(uint32_t taken, uint32_t lately);
uint32_t settings_units_offered(uint32_t taken, uint32_t lately);

/* Whether a mapping may be made: tests let them fail. */
bool settings_may_map(void);

#endif
