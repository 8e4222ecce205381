/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "settings.h"
#include "classes.h"
#include "report.h"
#include <stdatomic.h>
#include <string.h>

struct settings settings = {.keep = 32, .offer = 64, .fail_after = -1};

#define PREFIX "NUMALLOC_"

/* A setting: a number between two, or one of the words, whose positions are the values. */
struct row {
    const char *name;
    void *value;
    long least, most;
    const char *words[4];
    const char *help;
};

/* NUMALLOC_name; a test compares the guide with this table. */
static const struct row rows[] = {
    {"PROFILE", &settings.profile, 0, 0, {"numa", "uma", "lowmem"},
     "numa: memory is kept and used again on its node; uma: the same without nodes; lowmem: memory goes back at once"},
    {"HUGE", &settings.huge, 0, 0, {"auto", "always", "never"},
     "huge pages: auto asks for them above the first MiB of blocks, always for all blocks"},
    {"KEEP", &settings.keep, 0, 1 << 24, {0}, "MiB of free memory that are kept on each node, beside what was in use in the last seconds"},
    {"OFFER", &settings.offer, 0, 1 << 24, {0},
     "MiB of free memory, beside what was in use in the last seconds, above which it is dropped; from KEEP on the kernel may take it"},
    {"STATS", &settings.stats, 0, 1, {0}, "1: print counts when the program ends"},
    {"CHECK", &settings.check, 0, 1, {0}, "1: verify each block and each list, slowly"},
    {"FAIL_AFTER", &settings.fail_after, -1, 1 << 30, {0}, "for tests: every mapping after this many fails"},
};

static bool read_number(const char *text, const struct row *row)
{
    long number = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || number > row->most)
            return false;
        number = number * 10 + (*text - '0');
    }
    if (number < row->least || number > row->most)
        return false;
    *(long *)row->value = number;
    return true;
}

static bool read_word(const char *text, const struct row *row)
{
    for (int i = 0; i < 4 && row->words[i]; i++) {
        if (strcmp(text, row->words[i]) == 0) {
            *(int *)row->value = i;
            return true;
        }
    }
    return false;
}

static void read_entry(const char *entry)
{
    const char *equal = strchr(entry, '=');
    if (!equal)
        return;
    const char *name = entry + sizeof PREFIX - 1;
    size_t length = (size_t)(equal - name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *row = &rows[i];
        if (strlen(row->name) != length || strncmp(name, row->name, length) != 0)
            continue;
        if (row->words[0] ? !read_word(equal + 1, row) : !read_number(equal + 1, row)) {
            struct line line = {0};
            say(&line, entry);
            say(&line, ": expected ");
            if (row->words[0]) {
                for (int word = 0; word < 4 && row->words[word]; word++) {
                    say(&line, word ? ", " : "");
                    say(&line, row->words[word]);
                }
            } else {
                say(&line, "a number from ");
                say_number(&line, (uint64_t)(row->least < 0 ? 0 : row->least));
                say(&line, " to ");
                say_number(&line, (uint64_t)row->most);
            }
            say(&line, "; the default is used");
            line_print(&line);
        }
        return;
    }
    struct line line = {0};
    say(&line, entry);
    say(&line, ": there is no such setting; there are");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        say(&line, i ? ", " PREFIX : " " PREFIX);
        say(&line, rows[i].name);
    }
    line_print(&line);
}

void settings_read(char **environment)
{
    for (; environment && *environment; environment++) {
        if (strncmp(*environment, PREFIX, sizeof PREFIX - 1) == 0)
            read_entry(*environment);
    }
}

enum { UNITS_OF_MIB = (1 << 20) / UNIT };

uint32_t settings_units_kept(uint32_t taken, uint32_t lately)
{
    return settings.profile == LOWMEM ? 0 : (uint32_t)settings.keep * UNITS_OF_MIB + lately + lately / 4 - taken;
}

uint32_t settings_units_offered(uint32_t taken, uint32_t lately)
{
    return settings.profile == LOWMEM ? 0 : (uint32_t)settings.offer * UNITS_OF_MIB + lately + lately / 2 - taken;
}

bool settings_may_map(void)
{
    static _Atomic long mapped;
    return settings.fail_after < 0 || atomic_fetch_add(&mapped, 1) < settings.fail_after;
}
