/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An environment, as a program gets it when it starts. It is only read and changed before anything
 * else of the program runs. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

/* The value if this entry is of that variable, else NULL. */
char *environment_value(char *entry, const char *name);

/* The value of a variable, or NULL. */
char *environment_find(char **environment, const char *name);

/* Puts an entry "NAME=VALUE", which stays in use, in the place of the variable that has the name. A
 * variable that is not there is not added. */
void environment_replace(char **environment, const char *name, char *entry);

#endif
