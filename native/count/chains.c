/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "chains.h"
#include "os.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

/* Of libgcc, without its header. */
struct _Unwind_Context;
typedef int unwind_step(struct _Unwind_Context *, void *);
static int (*unwind)(unwind_step *, void *);
static uintptr_t (*address_of)(struct _Unwind_Context *);

/* This library's first and last byte. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

struct chain {
    uint64_t count;
    uint64_t frames[FRAMES];
};

bool chains_begin(bool wanted)
{
    if (!wanted)
        return true;
    /* Not of those that this library needs: a program without it must start too. */
    __typeof__(&dlopen) open = (__typeof__(&dlopen))dlsym(RTLD_DEFAULT, "dlopen");
    void *library = open ? open("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return false;
    address_of = (__typeof__(address_of))dlsym(library, "_Unwind_GetIP");
    __typeof__(unwind) found = (__typeof__(unwind))dlsym(library, "_Unwind_Backtrace");
    if (!address_of || !found)
        return false;
    unwind = found;
    return true;
}

static int step(struct _Unwind_Context *context, void *argument)
{
    enum { CONTINUE = 0, STOP = 4 };
    struct chain *chain = argument;
    uintptr_t address = address_of(context);
    if (address - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start))
        return CONTINUE;
    if (address == 0 || chain->count == FRAMES)
        return STOP;
    chain->frames[chain->count++] = address;
    return CONTINUE;
}

static uint64_t key_of(const struct chain *chain, uint64_t image)
{
    uint64_t key = image + 1;
    for (uint64_t at = 0; at < chain->count; at++)
        key = (key ^ chain->frames[at]) * UINT64_C(0x9e3779b97f4a7c15) ^ key >> 29;
    return key | 1;
}

/* Of whose mappings the lines are. */
static struct {
    _Atomic bool is_busy;
    struct count_file *file;
    uint64_t image;
} maps;

static bool is_known(const struct count_file *file, uint64_t image, uint64_t address)
{
    uint64_t count = atomic_load(&file->header.modules);
    for (uint64_t at = 0; at < count && at < MODULES; at++) {
        const struct count_module *module = &file->modules[at];
        if (atomic_load(&module->image) == image + 1 && address - module->from < module->to - module->from)
            return true;
    }
    return false;
}

static uint64_t number_at(const char **text, unsigned base)
{
    uint64_t number = 0;
    for (;; ++*text) {
        char c = **text;
        unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : base;
        if (digit >= base)
            return number;
        number = number * base + digit;
    }
}

/* 55e0-55f0 r-xp 00001000 fd:01 1234    /path */
static void note_mapping(char *line)
{
    const char *text = line;
    uint64_t from = number_at(&text, 16);
    uint64_t to = *text++ == '-' ? number_at(&text, 16) : 0;
    if (to <= from || strlen(text) < 6 || text[3] != 'x')
        return;
    text += 6;
    uint64_t offset = number_at(&text, 16);
    const char *path = strchr(text, '/');
    const char *device = strchr(text + (*text == ' '), ' ');
    if (!path || !device || is_known(maps.file, maps.image, from))
        return;
    device++;
    uint64_t inode = number_at(&device, 10), at = atomic_fetch_add(&maps.file->header.modules, 1);
    if (at >= MODULES)
        return;
    struct count_module *module = &maps.file->modules[at];
    module->from = from;
    module->to = to;
    module->offset = offset;
    module->inode = inode;
    strncpy(module->path, path, PATH_BYTES - 1);
    atomic_store_explicit(&module->image, maps.image + 1, memory_order_release);
}

static bool are_known(const struct count_file *file, uint64_t image, const struct chain *chain)
{
    uint64_t at = 0;
    while (at < chain->count && is_known(file, image, chain->frames[at]))
        at++;
    return at == chain->count;
}

void chains_note_modules(struct count_file *file, uint64_t image)
{
    if (atomic_exchange(&maps.is_busy, true))
        return;
    maps.file = file;
    maps.image = image;
    os_each_mapping(note_mapping);
    atomic_store(&maps.is_busy, false);
}

/* Notes files that were loaded meanwhile. Code that a program compiles is in no file: after some time nobody looks again. */
static void note_new_modules(struct count_file *file, uint64_t image, const struct chain *chain)
{
    enum { MOST_IN_VAIN = 64 };
    static _Atomic unsigned in_vain;
    if (are_known(file, image, chain) || atomic_load(&in_vain) >= MOST_IN_VAIN)
        return;
    chains_note_modules(file, image);
    if (!are_known(file, image, chain))
        atomic_fetch_add(&in_vain, 1);
}

long chains_site(struct count_file *file, uint64_t image, uintptr_t caller)
{
    enum { TRIES = 64 };
    struct chain chain = {0};
    if (unwind)
        unwind(step, &chain);
    if (chain.count == 0)
        chain.frames[chain.count++] = caller;
    uint64_t key = key_of(&chain, image);
    for (uint64_t try = 0; try < TRIES; try++) {
        uint64_t at = ((key >> 40) + try) % SITES, owner = 0;
        struct count_site *site = &file->sites[at];
        if (atomic_compare_exchange_strong(&site->key, &owner, key)) {
            site->image = image;
            for (uint64_t i = 0; i < chain.count; i++)
                site->frames[i] = chain.frames[i];
            atomic_store_explicit(&site->frames_known, chain.count, memory_order_release);
            note_new_modules(file, image, &chain);
            return (long)at;
        }
        if (owner == key)
            return (long)at;
    }
    return -1;
}
