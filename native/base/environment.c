/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "environment.h"
#include "os.h"
#include <limits.h>
#include <stdlib.h>
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

const struct variable *environment_read(char **environment, const struct variable *from, const struct variable *end,
                                        const char **value)
{
    for (; from < end; from++) {
        *value = environment_find(environment, from->name);
        if (*value && !from->read(*value))
            return from;
    }
    return NULL;
}

void environment_replace(char **environment, const char *name, char *entry)
{
    for (char **old = environment; *old; old++)
        if (environment_value(*old, name))
            *old = entry;
}

uint64_t environment_number(char **environment, const char *name, uint64_t otherwise)
{
    const char *text = environment_find(environment, name);
    char *end;
    uint64_t number = text ? strtoull(text, &end, 10) : 0;
    return text && end != text && *end == 0 ? number : otherwise;
}

bool environment_map(char **environment, const char *name, size_t least, int flags, struct observer_file *file)
{
    char path[PATH_MAX], *end;
    const char *text = environment_find(environment, name), *colon = text ? strrchr(text, ':') : NULL;
    if (!colon || (size_t)(colon - text) >= sizeof path)
        return false;
    memcpy(path, text, (size_t)(colon - text));
    path[colon - text] = 0;
    file->token = strtoull(colon + 1, &end, 16);
    if (end == colon + 1 || *end)
        return false;
    file->memory = os_map_shared(path, least, &file->bytes, flags);
    return file->memory;
}
