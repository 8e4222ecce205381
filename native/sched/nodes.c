/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "nodes.h"
#include "os.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS = 8192, NUMBERS = 1024 };

static struct {
    unsigned count;
    bool is_pretended;
    int16_t kernel[MAX_NODES];
    uint8_t distances[MAX_NODES][MAX_NODES];
} machine = {.count = 1, .kernel = {0}, .distances = {{LOCAL}}};
static uint8_t of_cpu[CPUS];

/* Marks what a list such as "0-3,8" names; called for CPUs of a node, and for nodes. */
static void each_of(const char *text, void (*mark)(unsigned number, unsigned value), unsigned value)
{
    for (;;) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (end == text)
            return;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long at = first; at <= last && at < CPUS; at++)
            mark((unsigned)at, value);
        if (*end != ',')
            return;
        text = end + 1;
    }
}

static void mark_cpu(unsigned cpu, unsigned node)
{
    of_cpu[cpu] = (uint8_t)node;
}

static void mark_node(unsigned number, unsigned value)
{
    (void)value;
    if (machine.count < MAX_NODES && number < NUMBERS)
        machine.kernel[machine.count++] = (int16_t)number;
}

/* The firmware's distances are at least 10; another number is no distance. */
static uint8_t distance_read(const char **text)
{
    char *end;
    unsigned long value = strtoul(*text, &end, 10);
    *text = end;
    return value < LOCAL || value > UINT8_MAX ? UINT8_MAX : (uint8_t)value;
}

static void read_node(unsigned node)
{
    char path[64], text[8192];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", machine.kernel[node]);
    if (os_read(path, text, sizeof text))
        each_of(text, mark_cpu, node);
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/distance", machine.kernel[node]);
    const char *at = text;
    /* A column for each node that is online, in their order. */
    os_read(path, text, sizeof text);
    for (unsigned other = 0; other < machine.count; other++)
        machine.distances[node][other] = node == other ? (distance_read(&at), LOCAL) : distance_read(&at);
}

void nodes_read(void)
{
    char text[4096];
    if (!os_read("/sys/devices/system/node/online", text, sizeof text))
        return;
    machine.count = 0;
    each_of(text, mark_node, 0);
    for (unsigned node = 0; node < machine.count; node++)
        read_node(node);
    if (machine.count == 0)
        machine.count = 1;
}

bool nodes_pretend(const char *text)
{
    static uint8_t rows[MAX_NODES][MAX_NODES];
    unsigned row = 0, column = 0, columns = 0;
    for (;; text++) {
        char *end;
        unsigned long value = strtoul(text, &end, 10);
        if (end == text || value < LOCAL || value > UINT8_MAX || row == MAX_NODES || column == MAX_NODES)
            return false;
        rows[row][column++] = (uint8_t)value;
        text = end;
        if (*text == ',')
            continue;
        if (row > 0 && column != columns)
            return false;
        columns = column;
        column = 0;
        row++;
        if (*text == 0)
            break;
        if (*text != ';')
            return false;
    }
    if (row != columns)
        return false;
    memcpy(machine.distances, rows, sizeof rows);
    machine.count = row;
    machine.is_pretended = true;
    return true;
}

unsigned nodes_count(void)
{
    return machine.count;
}

int node_here(uint32_t number, uint32_t count)
{
    if (machine.is_pretended)
        return (int)((uint64_t)number * machine.count / count);
    if (machine.count == 1)
        return 0;
    int cpu = os_cpu();
    return cpu >= 0 && cpu < CPUS ? of_cpu[cpu] : 0;
}

int node_of_kernel(int node)
{
    return machine.is_pretended || node < 0 || node >= (int)machine.count ? -1 : machine.kernel[node];
}

unsigned node_distance(int from, int to)
{
    return from == to ? LOCAL : machine.distances[from][to];
}
