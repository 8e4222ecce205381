/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct machine machine;

static bool node_line(const char *line)
{
    struct node node = {0};
    int id, fields = sscanf(line, "node %d %" SCNu64 " %511s", &id, &node.bytes, node.card);
    if (fields < 2 || id != machine.nodes || id >= MAX_NODES)
        return false;
    node.start = machine.bytes;
    machine.bytes += node.bytes;
    machine.node[machine.nodes++] = node;
    return true;
}

static bool cpu_line(const char *line)
{
    int cpu, node;
    if (sscanf(line, "cpu %d %d", &cpu, &node) != 2 || cpu != machine.cpus || cpu >= MAX_CPUS ||
        node < 0 || node >= machine.nodes)
        return false;
    machine.node_of_cpu[machine.cpus++] = (uint8_t)node;
    machine.node[node].cpus |= 1u << cpu;
    return true;
}

static bool distance_line(const char *line)
{
    int from, to, value;
    if (sscanf(line, "distance %d %d %d", &from, &to, &value) != 3 || from < 0 || to < 0 ||
        from >= machine.nodes || to >= machine.nodes || value < LOCAL_DISTANCE)
        return false;
    machine.distance[from][to] = value;
    return true;
}

static bool complete(const char *path)
{
    if (machine.nodes == 0 || machine.cpus == 0) {
        fprintf(stderr, "simulator: %s has %d nodes and %d CPUs; it needs both\n", path, machine.nodes,
                machine.cpus);
        return false;
    }
    if (machine.bytes >= MAX_MEMORY) {
        fprintf(stderr, "simulator: %" PRIu64 " MiB of memory; at most %llu MiB can be told from devices\n",
                machine.bytes >> 20, (MAX_MEMORY >> 20) - 1);
        return false;
    }
    for (int a = 0; a < machine.nodes; a++)
        for (int b = 0; b < machine.nodes; b++)
            if (machine.distance[a][b] == 0)
                machine.distance[a][b] = a == b ? LOCAL_DISTANCE : 2 * LOCAL_DISTANCE;
    return true;
}

bool machine_read(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "simulator: cannot read the machine file %s\n", path);
        return false;
    }
    char line[1024];
    bool good = true;
    while (good && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        good = line[0] == 0 || node_line(line) || cpu_line(line) || distance_line(line);
        if (!good)
            fprintf(stderr, "simulator: %s: not a line of a machine: %s\n", path, line);
    }
    fclose(file);
    return good && complete(path);
}
