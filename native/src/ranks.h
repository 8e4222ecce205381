/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ranks of MPI that one launcher started inside of `numa run`: each has its part of the plan. */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>

/* Gives the calling process, which has one thread yet, its share if NUMA_RANKS=1 and its launcher
 * says which of how many ranks of this machine it is. Ranks that nobody bound divide the plan's
 * places evenly, in order, and the process moves to its own; a rank that is bound has the places in
 * its mask. Settings and environment are then those of the share, and NUMA_RANKS=0. Where there are
 * more ranks than places, nothing is placed here and in children.
 *
 * Whether it is such a rank: its mask is then as its launcher or its share has it. */
bool ranks_begin(char **environment);

#endif
