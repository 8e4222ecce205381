/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The nodes of the machine by a number of our own, from 0 without gaps, and the distances between them. */
#ifndef SCHED_NODES_H
#define SCHED_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_NODES = 256, LOCAL = 10 };

/* Reads them from sysfs. Without it, the machine has one node. */
void nodes_read(void);

/* Another machine for tests: rows of distances, "10,20;20,10"; member i of n is on node i * nodes / n. False if the text is
 * none; then nothing has changed. */
bool nodes_pretend(const char *text);

unsigned nodes_count(void);

/* The node of the CPU on which the calling thread runs, of a member of a team. */
int node_here(uint32_t number, uint32_t count);

/* The kernel's number of a node. -1: a node of nodes_pretend. */
int node_of_kernel(int node);

/* LOCAL for a node and itself. */
unsigned node_distance(int from, int to);

#endif
