/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "symbols.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static uintptr_t address_in(const struct object *object, uintptr_t address)
{
    /* The loader has added the base already, except on some architectures. */
    return address < object->base ? address + object->base : address;
}

static void read_object(struct object *object, const ElfW(Dyn) *entry)
{
    object->dynamic = entry;
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

struct object object_of(const struct dl_phdr_info *library)
{
    struct object object = {.base = library->dlpi_addr};
    for (int i = 0; i < library->dlpi_phnum; i++)
        if (library->dlpi_phdr[i].p_type == PT_DYNAMIC)
            read_object(&object, (const ElfW(Dyn) *)(object.base + library->dlpi_phdr[i].p_vaddr));
    return object;
}

void *symbol_in(const struct object *object, const char *name)
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
