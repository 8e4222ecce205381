/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* MPI ranks that a launcher started in one `numa run`: each gets a part of the plan. */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>

/* Gives the calling process, which has a single thread, its share if NUMA_RANKS=1 and its launcher names
 * its rank on this machine and the number of ranks. Ranks that are not bound divide the plan's places
 * evenly, in order, and the process moves to its own; a rank that is bound gets the places in its mask.
 * Settings and environment are then those of the share, with NUMA_RANKS=0. If there are more ranks than
 * places, nothing is placed here and in children. Returns whether this is such a rank: then its mask is
 * that of its launcher or share. */
bool ranks_begin(char **environment);

#endif
