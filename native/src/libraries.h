/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whose thread or call it is: known by the library that a function is in. */
#ifndef LIBRARIES_H
#define LIBRARIES_H

enum owner {
    PROGRAM,         /* to be placed */
    OPENMP_OF_GCC,   /* the same; binds by attributes, and the main thread by itself */
    BINDING_RUNTIME, /* binds its threads after they have begun, if asked to; then only pages are ours */
    HELPERS,         /* helper threads: the whole mask, otherwise left alone */
};

/* Of the library that has this function or an instruction there. */
enum owner owner_of(void *address);

#endif
