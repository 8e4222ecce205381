/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The owner of a thread or call, from the library that contains its function. */
#ifndef LIBRARIES_H
#define LIBRARIES_H

enum owner {
    PROGRAM,         /* to be placed */
    OPENMP_OF_GCC,   /* to be placed; binds by attributes, and the main thread itself */
    BINDING_RUNTIME, /* binds its threads after they have started, if requested; we only move their pages */
    HELPERS,         /* helper threads: get the whole mask, are not placed */
};

/* The owner of the library that contains this address. */
enum owner owner_of(void *address);

#endif
