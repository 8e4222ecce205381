/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "settings.h"
#include "base/environment.h"
#include "lines.h"
#include "nodes.h"
#include <stdlib.h>
#include <string.h>

static struct settings present;

const struct settings *settings(void)
{
    return &present;
}

static bool read_switch(const char *text, bool *is_one)
{
    *is_one = strcmp(text, "1") == 0;
    return *is_one || strcmp(text, "0") == 0;
}

static bool read_active(const char *text)
{
    bool is_on = true, is_good = read_switch(text, &is_on);
    present.is_off = is_good && !is_on;
    return is_good;
}

static bool read_statistics(const char *text)
{
    return read_switch(text, &present.has_statistics);
}

static bool read_chunk(const char *text)
{
    char *end;
    uint64_t chunk = strtoull(text, &end, 10);
    if (end == text || *end || *text == '-' || chunk == 0)
        return false;
    present.chunk = chunk;
    return true;
}

static const struct variable VARIABLES[] = {
    {"NUMASCHED", "0", read_active},
    {"NUMASCHED_STATS", "1", read_statistics},
    {"NUMASCHED_CHUNK", "64", read_chunk},
    {"NUMASCHED_DISTANCES", "10,20;20,10", nodes_pretend},
};

void settings_read(char **environment)
{
    const struct variable *wrong = VARIABLES, *end = wrong + sizeof VARIABLES / sizeof *VARIABLES;
    const char *value;
    for (; (wrong = environment_read(environment, wrong, end, &value)); wrong++)
        line_print("%s is '%.100s'; write it like %s=%s. It has no effect", wrong->name, value, wrong->name, wrong->example);
}
