/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The simulated machine: nodes, CPUs, distances. Read once from a text file, then constant. */
#ifndef SIMULATOR_MACHINE_H
#define SIMULATOR_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    MAX_NODES = 8,
    MAX_CPUS = 16,
    LINE_SHIFT = 6,
    PAGE_SHIFT = 12,
    LINES_PER_PAGE = 1 << (PAGE_SHIFT - LINE_SHIFT),
    LOCAL_DISTANCE = 10,
};

/* Reported addresses of cards begin above 3 GiB, those of memory end at twice its size. */
#define MAX_MEMORY (3ull << 30)

struct node {
    uint64_t start, bytes; /* where the node's memory lies when nodes follow each other */
    uint32_t cpus;         /* one bit a CPU */
    char card[512];        /* file of the card's registers; empty: no card */
};

struct machine {
    int nodes, cpus;
    struct node node[MAX_NODES];
    uint8_t node_of_cpu[MAX_CPUS];
    int distance[MAX_NODES][MAX_NODES];
    uint64_t bytes;
};

extern struct machine machine;

/* Reads the file into `machine`. False, with a sentence on stderr, when it is not a machine
 * that can be simulated. */
bool machine_read(const char *path);

/* The number of the page at an address that QEMU reports, counted over all nodes; -1 where no
 * node has memory. QEMU adds the node's place in its list of memory blocks to the place in the
 * guest, which are the same here: node memory is made first and in order. */
static inline int64_t machine_page(uint64_t reported)
{
    for (int n = 0; n < machine.nodes; n++) {
        uint64_t offset = reported - 2 * machine.node[n].start;
        if (offset < machine.node[n].bytes)
            return (int64_t)((machine.node[n].start + offset) >> PAGE_SHIFT);
    }
    return -1;
}

/* The node that a line's memory belongs to. */
static inline int machine_home(uint32_t line)
{
    int n = machine.nodes - 1;
    while (n > 0 && ((uint64_t)line << LINE_SHIFT) < machine.node[n].start)
        n--;
    return n;
}

#endif
