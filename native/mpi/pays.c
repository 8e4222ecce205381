/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pays.h"
#include "os.h"
#include "settings.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AS_TEXT(name) #name,
static const char *const NAMES[] = {SERVED(AS_TEXT)};
/* crates/bench/src/collectives.rs writes no longer table. */
static char text[65536];

/* Blanks are one blank, as MPICH has columns of them. A version does not begin with another one: 5.0.11 is not 5.0.1. */
static bool begins_with(const char *text, const char *beginning)
{
    char last = 0;
    for (; *beginning && *beginning != '\n'; text++, beginning++) {
        if (isspace((unsigned char)*beginning) && isspace((unsigned char)*text)) {
            while (isspace((unsigned char)beginning[1]) && beginning[1] != '\n')
                beginning++;
            while (isspace((unsigned char)text[1]))
                text++;
        } else if (*text != *beginning) {
            return false;
        }
        last = *beginning;
    }
    return !isalnum((unsigned char)last) || !isalnum((unsigned char)*text);
}

static bool read_row(const char *line, const char *library, struct row *row)
{
    char name[16];
    int at = 0;
    if (sscanf(line, "%15s %u %u %u %n", name, &row->from, &row->to, &row->most, &at) != 4 || at == 0)
        return false;
    for (uint32_t i = 0; i < SERVED_COUNT; i++)
        if (strcmp(name, NAMES[i]) == 0) {
            row->operation = i;
            return line[at] && begins_with(library, line + at);
        }
    return false;
}

/* What a table says of a number of ranks; what is behind counts more. */
enum known { NO_TABLE, OTHER_MPIS, OTHER_RANKS, PAYS_NEVER, PAYS_SOMETIMES };

/* Of the lines that say that something was measured. */
static enum known read_measured(const char *line, const char *library, int ranks)
{
    unsigned measured;
    int at = 0;
    if (sscanf(line, "measured %*15s %u %*u %*u %*s %*s %*s %*s %*s %*s %*s %*s %*s %n", &measured, &at) != 1 || at == 0 ||
        !line[at] || !begins_with(library, line + at))
        return OTHER_MPIS;
    return measured == (unsigned)ranks ? PAYS_NEVER : OTHER_RANKS;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : NULL;
}

uint64_t pays_read(const char *path, const char *library, struct row rows[ROWS])
{
    uint64_t count = 0;
    if (!os_read(path, text, sizeof text))
        return 0;
    for (const char *line = text; line && count < ROWS; line = next_line(line))
        count += read_row(line, library, &rows[count]);
    return count;
}

static enum known known_of(const char *path, const char *library, int ranks)
{
    enum known known = OTHER_MPIS;
    if (!path || !os_read(path, text, sizeof text))
        return NO_TABLE;
    for (const char *line = text; line; line = next_line(line)) {
        struct row row;
        enum known found = read_measured(line, library, ranks);
        if (read_row(line, library, &row))
            found = row.from <= (unsigned)ranks && (unsigned)ranks <= row.to ? PAYS_SOMETIMES : OTHER_RANKS;
        known = found > known ? found : known;
    }
    return known;
}

const char *pays_lack(const char *path, const char *library, int ranks)
{
    const char *const LACKS[] = {
        [NO_TABLE] = path ? "nothing was measured for the table " : "those of this machine were not measured",
        [OTHER_MPIS] = "this MPI was not measured for the table ",
        [OTHER_RANKS] = "this number of ranks was not measured with this MPI for the table ",
        [PAYS_NEVER] = "the library's take no less time with this number of ranks, by the table ",
    };
    static char said[512];
    enum known known = known_of(path, library, ranks);
    if (known == PAYS_SOMETIMES)
        return NULL;
    int length = snprintf(said, sizeof said, "%s%.300s", LACKS[known], path ? path : "");
    if (known != PAYS_NEVER)
        snprintf(said + length, sizeof said - (size_t)length, "; measure them with: numa bench mpi -- mpirun -n %d ...", ranks);
    return said;
}

int pays_up_to(const struct shared *shared, enum served operation, int ranks)
{
    int most = -1;
    if (shared->mode != AUTO)
        return LARGEST;
    for (uint64_t i = 0; i < shared->rows && i < ROWS; i++) {
        const struct row *row = &shared->table[i];
        if (row->operation == operation && row->from <= (uint32_t)ranks && (uint32_t)ranks <= row->to && (int)row->most > most)
            most = row->most < LARGEST ? (int)row->most : LARGEST;
    }
    return most;
}
