/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The interconnect cards: one file of registers per node, shared with the guest, laid out as a
 * NumaConnect2 card. */
#ifndef SIMULATOR_CARDS_H
#define SIMULATOR_CARDS_H

#include <stdbool.h>
#include <stdint.h>

/* Maps the files of all nodes that have one, starts the counters at `start`, and serves orders
 * from a thread. False, with a sentence on stderr, when a file cannot be mapped. */
bool cards_create(uint64_t start);

/* Acts on what the guest wrote to the control registers since the last call. */
void cards_serve(void);

/* Writes the counters of running cards where the guest reads them. */
void cards_refresh(void);

#endif
