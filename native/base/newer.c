/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "newer.h"
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#pragma weak pthread_key_create
#undef dlsym
extern void *dlsym(void *, const char *) __attribute__((weak));

static struct newer found;

/* A library that the loader has loaded. */
struct object {
    uintptr_t base;
    const ElfW(Sym) *symbols;
    const char *names;
    const ElfW(Half) *versions;
    const uint32_t *hashes;
};

static uintptr_t address_in(const struct object *object, uintptr_t address)
{
    /* The loader has added the base already, except on some architectures. */
    return address < object->base ? address + object->base : address;
}

static void read_object(struct object *object, const ElfW(Dyn) *entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        uintptr_t address = address_in(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            object->symbols = (const ElfW(Sym) *)address;
        else if (entry->d_tag == DT_STRTAB)
            object->names = (const char *)address;
        else if (entry->d_tag == DT_VERSYM)
            object->versions = (const ElfW(Half) *)address;
        else if (entry->d_tag == DT_GNU_HASH)
            object->hashes = (const uint32_t *)address;
    }
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* The symbol of this name, in its default version. */
static void *symbol_in(const struct object *object, const char *name)
{
    enum { HIDDEN = 0x8000 };
    if (!object->symbols || !object->names || !object->hashes)
        return NULL;
    const uint32_t *head = object->hashes, buckets = head[0], first = head[1];
    const uint32_t *starts = head + 4 + head[2] * sizeof(ElfW(Addr)) / sizeof *head, *chain = starts + buckets;
    uint32_t wanted = hash_of(name), at = buckets ? starts[wanted % buckets] : 0;
    for (; at >= first; at++) {
        const ElfW(Sym) *symbol = &object->symbols[at];
        uint32_t hash = chain[at - first];
        bool hidden = object->versions && object->versions[at] & HIDDEN;
        if ((hash | 1) == (wanted | 1) && !hidden && symbol->st_shndx != SHN_UNDEF &&
            strcmp(object->names + symbol->st_name, name) == 0)
            return (void *)(object->base + symbol->st_value);
        if (hash & 1)
            break;
    }
    return NULL;
}

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
    struct object object = {.base = library->dlpi_addr};
    (void)size;
    if (!is_part(library->dlpi_name))
        return 0;
    for (int i = 0; i < library->dlpi_phnum; i++)
        if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
            read_object(&object, (const ElfW(Dyn) *)(object.base + library->dlpi_phdr[i].p_vaddr));
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
