/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "nodes.h"
#include "os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 64 * MASK_WORDS };

/* The bits that a list such as "0-3,8" names. */
static void read_list(const char *text, uint64_t bits[MASK_WORDS])
{
    memset(bits, 0, sizeof *bits * MASK_WORDS);
    for (;;) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (end == text)
            return;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long at = first; at <= last && at < BITS; at++)
            bits[at / 64] |= UINT64_C(1) << at % 64;
        if (*end != ',')
            return;
        text = end + 1;
    }
}

static bool has_all(const uint64_t *bits, const uint64_t *mask)
{
    for (int i = 0; i < MASK_WORDS; i++)
        if (mask[i] & ~bits[i])
            return false;
    return true;
}

int node_of_mask(const uint64_t mask[MASK_WORDS])
{
    char path[64], text[8192];
    uint64_t nodes[MASK_WORDS], cpus[MASK_WORDS];
    /* A kernel without NUMA has no such file. */
    if (!os_read("/sys/devices/system/node/online", text, sizeof text) || strcmp(text, "0\n") == 0)
        return 0;
    read_list(text, nodes);
    for (int node = 0; node < BITS; node++) {
        if (!(nodes[node / 64] >> node % 64 & 1))
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
        if (!os_read(path, text, sizeof text))
            continue;
        read_list(text, cpus);
        if (has_all(cpus, mask))
            return node;
    }
    return -1;
}
