/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "environment.h"
#include <stddef.h>
#include <string.h>

char *environment_value(char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1 : NULL;
}

char *environment_find(char **environment, const char *name)
{
    for (char **entry = environment; *entry; entry++) {
        char *value = environment_value(*entry, name);
        if (value)
            return value;
    }
    return NULL;
}

void environment_replace(char **environment, const char *name, char *entry)
{
    for (char **old = environment; *old; old++)
        if (environment_value(*old, name))
            *old = entry;
}
