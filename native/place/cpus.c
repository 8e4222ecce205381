/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cpus.h"

int cpus_count(const struct cpus *cpus, int *only)
{
    int count = 0;
    *only = -1;
    for (size_t at = 0; at < MAX_CPUS / WORD && count < 2; at++) {
        unsigned long word = cpus->words[at];
        if (word && count == 0)
            *only = (int)(at * WORD) + __builtin_ctzl(word);
        if (word)
            count += word & (word - 1) ? 2 : 1;
    }
    return count < 2 ? count : 2;
}

bool cpus_within(const struct cpus *few, const struct cpus *many)
{
    for (size_t at = 0; at < MAX_CPUS / WORD; at++)
        if (few->words[at] & ~many->words[at])
            return false;
    return true;
}

static bool number_next(const char **text, int limit, int *number)
{
    const char *at = *text;
    long value = 0;
    for (; *at >= '0' && *at <= '9' && value < limit; at++)
        value = value * 10 + (*at - '0');
    if (at == *text || value >= limit)
        return false;
    *number = (int)value;
    *text = at;
    return true;
}

bool list_next(const char **text, char stop, int limit, int *first, int *last)
{
    const char *at = *text;
    if (!number_next(&at, limit, first))
        return false;
    *last = *first;
    if (*at == '-') {
        at++;
        if (!number_next(&at, limit, last) || *last < *first)
            return false;
    }
    if (*at && *at != ',' && *at != stop)
        return false;
    if (*at == ',' && (at[1] < '0' || at[1] > '9'))
        return false;
    *text = *at == ',' ? at + 1 : at;
    return true;
}

bool number_read(const char *text, int limit, int *number)
{
    return number_next(&text, limit, number) && !*text;
}
