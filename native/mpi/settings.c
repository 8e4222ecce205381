/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "settings.h"
#include "base/environment.h"
#include <stdlib.h>
#include <string.h>

static struct settings present;

const struct settings *settings(void)
{
    return &present;
}

static bool read_collectives(const char *text)
{
    if (strcmp(text, "small") == 0)
        present.collectives = SMALL;
    else if (strcmp(text, "auto") == 0)
        present.collectives = AUTO;
    else if (strcmp(text, "measure") == 0)
        present.collectives = MEASURE;
    else
        return false;
    return true;
}

static bool read_table(const char *text)
{
    present.table = *text ? text : NULL;
    return *text;
}

static bool read_statistics(const char *text)
{
    present.has_statistics = strcmp(text, "1") == 0;
    return present.has_statistics || strcmp(text, "0") == 0;
}

static bool read_count(const char *text, int *count)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < 1 || number > 1024)
        return false;
    *count = (int)number;
    return true;
}

static bool read_nodes(const char *text)
{
    return read_count(text, &present.nodes);
}

static bool read_cpus(const char *text)
{
    return read_count(text, &present.cpus);
}

static const struct variable VARIABLES[] = {
    {"NUMAMPI_COLLECTIVES", "small", read_collectives},
    {"NUMAMPI_TABLE", "/etc/numampi.table", read_table},
    {"NUMAMPI_STATS", "1", read_statistics},
    {"NUMAMPI_NODES", "4", read_nodes},
    {"NUMAMPI_CPUS", "64", read_cpus},
};

void settings_read(char **environment, void (*complain)(const char *name, const char *value, const char *example))
{
    const struct variable *wrong = VARIABLES, *end = wrong + sizeof VARIABLES / sizeof *VARIABLES;
    const char *value;
    for (; (wrong = environment_read(environment, wrong, end, &value)); wrong++)
        complain(wrong->name, value, wrong->example);
}
