/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "newer.h"
#include "symbols.h"
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#pragma weak pthread_key_create
#undef dlsym
extern void *dlsym(void *, const char *) __attribute__((weak));

static struct newer found;

struct lookup {
    const char *name;
    void *symbol;
};

/* Whether this is a part of the C library, as it was before glibc 2.34. */
static bool is_part(const char *path)
{
    static const char *const PARTS[] = {"/libpthread", "/libc.so", "/libc-", "/librt", "/libanl"};
    const char *file = strrchr(path, '/');
    for (size_t i = 0; file && i < sizeof PARTS / sizeof *PARTS; i++)
        if (strncmp(file, PARTS[i], strlen(PARTS[i])) == 0)
            return true;
    return false;
}

static int search_object(struct dl_phdr_info *library, size_t size, void *data)
{
    struct lookup *lookup = data;
    (void)size;
    if (!is_part(library->dlpi_name))
        return 0;
    struct object object = object_of(library);
    lookup->symbol = symbol_in(&object, lookup->name);
    return lookup->symbol != NULL;
}

/* Like dlsym, which is in libdl before glibc 2.34: a program with threads need not have loaded it. Also
 * finds libpthread if a plugin has loaded it. */
void *numakit_dlsym(void *where, const char *name)
{
    struct lookup lookup = {name, dlsym ? dlsym(where, name) : NULL};
    if (!lookup.symbol)
        dl_iterate_phdr(search_object, &lookup);
    return lookup.symbol;
}

bool threads_are_there(void)
{
    return pthread_key_create != NULL;
}

/* In C, a pointer to a function is not one to an object; here both have the same size. */
static void look_up(const char *name, void *function)
{
    void *symbol = numakit_dlsym(RTLD_DEFAULT, name);
    memcpy(function, &symbol, sizeof symbol);
}

void newer_begin(void)
{
    look_up("pthread_getattr_default_np", &found.get_defaults);
    look_up("pthread_attr_getsigmask_np", &found.get_signals);
    look_up("pthread_attr_setsigmask_np", &found.set_signals);
    look_up("_dl_find_object", &found.find_object);
}

const struct newer *newer(void)
{
    return &found;
}

int default_attributes(pthread_attr_t *attributes)
{
    /* Before 2.18 a program could not change what fresh attributes have. */
    return found.get_defaults ? found.get_defaults(attributes) : pthread_attr_init(attributes);
}
