/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whose thread it is: told by the library that its first function is in. */
#ifndef LIBRARIES_H
#define LIBRARIES_H

enum owner {
    PROGRAM,        /* to be placed */
    BINDING_RUNTIME, /* binds its threads after they have begun, if asked to; then only pages are ours */
    HELPERS,        /* helper threads: the whole mask, otherwise left alone */
};

enum owner owner_of(void *(*function)(void *));

#endif
