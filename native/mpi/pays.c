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

/* Blanks are one blank, as MPICH has columns of them. */
static bool begins_with(const char *text, const char *beginning)
{
    for (; *beginning && *beginning != '\n'; text++, beginning++) {
        if (isspace((unsigned char)*beginning) && isspace((unsigned char)*text)) {
            while (isspace((unsigned char)beginning[1]) && beginning[1] != '\n')
                beginning++;
            while (isspace((unsigned char)text[1]))
                text++;
        } else if (*text != *beginning) {
            return false;
        }
    }
    return true;
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

uint64_t pays_read(const char *path, const char *library, struct row rows[ROWS])
{
    char text[16384];
    uint64_t count = 0;
    if (!os_read(path, text, sizeof text))
        return 0;
    for (const char *line = text; line && count < ROWS; line = strchr(line, '\n')) {
        line += *line == '\n';
        count += read_row(line, library, &rows[count]);
    }
    return count;
}

int pays_up_to(const struct shared *shared, enum served operation, int ranks)
{
    int most = -1;
    if (shared->mode == SMALL)
        return LARGEST;
    for (uint64_t i = 0; i < shared->rows && i < ROWS; i++) {
        const struct row *row = &shared->table[i];
        if (row->operation == operation && row->from <= (uint32_t)ranks && (uint32_t)ranks <= row->to && (int)row->most > most)
            most = row->most < LARGEST ? (int)row->most : LARGEST;
    }
    return most;
}
