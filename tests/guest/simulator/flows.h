/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What the model counts, as a card's counters: one table. */
#ifndef SIMULATOR_FLOWS_H
#define SIMULATOR_FLOWS_H

#include <stdint.h>

/* Adds the counts of a node's card to the 64-bit words of its counter block. */
void flows_count(int node, uint64_t *words);

#endif
