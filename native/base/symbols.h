/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The symbols of a library that is loaded, read from its memory: dlsym takes a lock that a constructor may hold which waits
 * for the calling thread. */
#ifndef SYMBOLS_H
#define SYMBOLS_H

#include <link.h>
#include <stdint.h>

struct object {
    uintptr_t base;
    const ElfW(Dyn) *dynamic;      /* NULL: a static program */
    const ElfW(Sym) *symbols;
    const char *names;
    const ElfW(Half) *versions;
    const uint32_t *hashes;
};

struct object object_of(const struct dl_phdr_info *library);

/* The symbol of this name, in its default version; NULL if the object defines none. */
void *symbol_in(const struct object *object, const char *name);

#endif
