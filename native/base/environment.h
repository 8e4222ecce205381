/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The environment of a program at its start. It is only read and changed before other code of the program
 * runs. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value if this entry is that variable, else NULL. */
char *environment_value(char *entry, const char *name);

/* The value of a variable, or NULL. */
char *environment_find(char **environment, const char *name);

/* A variable that a library reads, with a value as an example. */
struct variable {
    const char *name;
    const char *example;
    bool (*read)(const char *text);
};

/* Reads the variables from this one on that are set, up to one whose value is not as it should be, which is returned with
 * its value; NULL if there is none. */
const struct variable *environment_read(char **environment, const struct variable *from, const struct variable *end,
                                        const char **value);

/* Replaces the entry of a variable by "NAME=VALUE", which must stay valid. A variable that is not set is
 * not added. */
void environment_replace(char **environment, const char *name, char *entry);

/* The number that a variable is; something else if it is not set, or is no number. */
uint64_t environment_number(char **environment, const char *name, uint64_t otherwise);

/* A file of an observer, and the token that it has to have: in a container the path may be that of another one. */
struct observer_file {
    void *memory;
    size_t bytes;
    uint64_t token;
};

/* Maps the file that a variable names, PATH:TOKEN with the token in hexadecimal digits. False if there is none, or none that
 * has at least `least` bytes. */
bool environment_map(char **environment, const char *name, size_t least, int flags, struct observer_file *file);

#endif
