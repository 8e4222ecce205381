/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library begins in its process, once, and again in each forked child. */
#ifndef BEGIN_H
#define BEGIN_H

#include <stdbool.h>

/* The library's own: what it does then. The environment is the program's. */
void library_prepare(char **environment);

/* Does it, once: libraries may call interposed functions before the constructor. Nothing while it goes on, nor before there is
 * an environment. */
void library_begin(char **environment);

/* From now on the function is called in each child of fork and _Fork, which has only the calling thread. */
void library_follow(void (*begin_child)(void));

/* Whether the calling process is the one that the library follows; not so in a child that shares its parent's memory. */
bool library_is_of_process(void);

#endif
