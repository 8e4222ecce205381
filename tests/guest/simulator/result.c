/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "result.h"

#include "model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    FORMAT = 1,
    MAX_REGIONS = 256, /* of which the file tells one by one */
};

typedef uint64_t matrix[MAX_NODES][MAX_NODES];

struct lines {
    matrix fetches, transfers, writebacks;
};

static struct counts sums[MAX_NODES];
static struct lines before, each[MAX_REGIONS];
static int told;

/* All counts up to now. Dirty lines go from the node that had them, whichever CPU evicted them. */
static void count(struct lines *lines)
{
    memset(lines, 0, sizeof *lines);
    for (int a = 0; a < machine.nodes; a++)
        model_sum(a, &sums[a]);
    for (int a = 0; a < machine.nodes; a++) {
        for (int b = 0; b < machine.nodes; b++) {
            lines->fetches[a][b] = sums[a].fetches[b];
            lines->transfers[a][b] = sums[a].transfers[b];
            for (int by = 0; by < machine.nodes; by++)
                lines->writebacks[a][b] += sums[by].writebacks[a][b];
        }
    }
}

void result_region(void)
{
    struct lines now;
    count(&now);
    const uint64_t *to = (const uint64_t *)&now, *from = (const uint64_t *)&before;
    for (size_t i = 0; told < MAX_REGIONS && i < sizeof now / sizeof *to; i++)
        ((uint64_t *)&each[told])[i] = to[i] - from[i];
    told += told < MAX_REGIONS;
    before = now;
}

static void write_matrix(FILE *file, const char *name, const uint64_t (*rows)[MAX_NODES])
{
    fprintf(file, "\"%s\": [", name);
    for (int a = 0; a < machine.nodes; a++) {
        fprintf(file, "%s[", a ? ", " : "");
        for (int b = 0; b < machine.nodes; b++)
            fprintf(file, "%s%" PRIu64, b ? ", " : "", rows[a][b]);
        fprintf(file, "]");
    }
    fprintf(file, "]");
}

static void write_lines(FILE *file, const struct lines *lines, const char *between)
{
    write_matrix(file, "fetches", lines->fetches);
    fprintf(file, ",%s", between);
    write_matrix(file, "transfers", lines->transfers);
    fprintf(file, ",%s", between);
    write_matrix(file, "writebacks", lines->writebacks);
}

static void write_all(FILE *file, uint64_t regions, uint64_t elapsed_ns)
{
    struct lines total;
    matrix wait;
    count(&total);
    for (int n = 0; n < machine.nodes; n++)
        memcpy(wait[n], sums[n].wait, sizeof wait[n]);
    fprintf(file, "{\n  \"format\": %d,\n  \"line_bytes\": %d,\n  \"nodes\": %d,\n", FORMAT, 1 << LINE_SHIFT,
            machine.nodes);
    fprintf(file, "  \"regions\": %" PRIu64 ",\n  \"elapsed_ns\": %" PRIu64 ",\n  \"accesses\": [", regions,
            elapsed_ns);
    for (int n = 0; n < machine.nodes; n++)
        fprintf(file, "%s%" PRIu64, n ? ", " : "", sums[n].accesses);
    fprintf(file, "],\n  ");
    write_lines(file, &total, "\n  ");
    fprintf(file, ",\n  ");
    write_matrix(file, "wait_cycles", (const uint64_t(*)[MAX_NODES])wait);
    fprintf(file, ",\n  \"each\": [");
    for (int r = 0; r < told; r++) {
        fprintf(file, "%s\n    {", r ? "," : "");
        write_lines(file, &each[r], " ");
        fprintf(file, "}");
    }
    fprintf(file, "\n  ]\n}\n");
}

void result_write(const char *path, uint64_t regions, uint64_t elapsed_ns)
{
    char unfinished[1024];
    snprintf(unfinished, sizeof unfinished, "%s.unfinished", path);
    FILE *file = fopen(unfinished, "w");
    if (!file) {
        fprintf(stderr, "simulator: cannot write %s\n", unfinished);
        return;
    }
    write_all(file, regions, elapsed_ns);
    if (fclose(file) != 0 || rename(unfinished, path) != 0)
        fprintf(stderr, "simulator: cannot write %s\n", path);
}
