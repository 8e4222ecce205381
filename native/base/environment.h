/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The environment of a program at its start. It is only read and changed before other code of the program
 * runs. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

/* The value if this entry is that variable, else NULL. */
char *environment_value(char *entry, const char *name);

/* The value of a variable, or NULL. */
char *environment_find(char **environment, const char *name);

/* Replaces the entry of a variable by "NAME=VALUE", which must stay valid. A variable that is not set is
 * not added. */
void environment_replace(char **environment, const char *name, char *entry);

#endif
