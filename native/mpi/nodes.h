/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef MPI_NODES_H
#define MPI_NODES_H

#include "layout.h"

/* The node that has all of these CPUs; -1 if several have, or it is unknown. */
int node_of_mask(const uint64_t mask[MASK_WORDS]);

#endif
