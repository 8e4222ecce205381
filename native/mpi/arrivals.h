/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How long a rank waits in a collective for others: each rank writes when it came, and reads later when the others did. */
#ifndef MPI_ARRIVALS_H
#define MPI_ARRIVALS_H

#include "communicators.h"

/* Notes a collective call, and judges those of an earlier batch when one is full. */
void arrivals_note(struct communicator *communicator, uint64_t begin, uint64_t took, uint32_t cell,
                   enum operation operation, int root);
/* Judges what is left. */
void arrivals_judge_rest(struct communicator *communicator);

#endif
