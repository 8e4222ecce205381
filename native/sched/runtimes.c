/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "runtimes.h"
#include "base/next.h"
#include "base/symbols.h"
#include "lines.h"
#include "os.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

enum { RUNTIMES = 16, KNOWN = 4 };

/* Counts modules that were unloaded: another one may be where they were. */
static atomic_uint generation;

static struct {
    struct runtime each[RUNTIMES];
    atomic_uint count;
    atomic_flag is_busy;
} all = {.is_busy = ATOMIC_FLAG_INIT};

static const char *const NAMES[] = {
#define NAME_OF(name) #name,
    FUNCTIONS(NAME_OF)
};

int dlclose(void *handle);
static NEXT_DEFINE(dlclose)

PUBLIC int dlclose(void *handle)
{
    NEXT_OR(-1, dlclose);
    int result = next(handle);
    atomic_fetch_add(&generation, 1);
    return result;
}

static bool contains(const struct dl_phdr_info *library, uintptr_t address, uintptr_t *from, uintptr_t *size)
{
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
        *from = library->dlpi_addr + segment->p_vaddr;
        *size = segment->p_memsz;
        if (segment->p_type == PT_LOAD && address - *from < *size)
            return true;
    }
    return false;
}

static void *runtime_in(const struct object *object)
{
    return symbol_in(object, "GOMP_parallel_start");
}

struct search {
    uintptr_t address;
    struct module module;
    struct object caller, runtime;
    const char *needed;            /* the name of a library that the caller needs */
};

static int find_caller(struct dl_phdr_info *library, size_t size, void *data)
{
    struct search *search = data;
    (void)size;
    if (!contains(library, search->address, &search->module.from, &search->module.size))
        return 0;
    search->caller = object_of(library);
    return 1;
}

static const char *name_of(const struct object *object)
{
    for (const ElfW(Dyn) *entry = object->dynamic; entry && object->names && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_SONAME)
            return object->names + entry->d_un.d_val;
    return NULL;
}

/* The first in the order of the loader, but this library; of the one name that is needed, if there is one. */
static int find_runtime(struct dl_phdr_info *library, size_t size, void *data)
{
    struct search *search = data;
    struct object object = object_of(library);
    uintptr_t from, bytes;
    (void)size;
    const char *name = search->needed ? name_of(&object) : NULL;
    if ((search->needed && (!name || strcmp(name, search->needed))) ||
        contains(library, (uintptr_t)&all, &from, &bytes) || !runtime_in(&object))
        return 0;
    search->runtime = object;
    return 1;
}

/* A linker that finds all functions of libgomp in this library leaves libgomp out of a program that is linked with both. */
static bool load_runtime(void)
{
    __typeof__(&dlopen) open = (__typeof__(&dlopen))dlsym(RTLD_DEFAULT, "dlopen");
    return open && open("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL);
}

/* A module that has a libgomp itself uses that one; else the one that it needs; else what the program has for all. */
static bool search_runtime(struct search *search)
{
    if (!dl_iterate_phdr(find_caller, search))
        return false;
    if (runtime_in(&search->caller)) {
        search->runtime = search->caller;
        return true;
    }
    const struct object *caller = &search->caller;
    for (const ElfW(Dyn) *entry = caller->dynamic; entry && caller->names && entry->d_tag != DT_NULL; entry++) {
        search->needed = caller->names + entry->d_un.d_val;
        if (entry->d_tag == DT_NEEDED && dl_iterate_phdr(find_runtime, search))
            return true;
    }
    search->needed = NULL;
    return dl_iterate_phdr(find_runtime, search) || (load_runtime() && dl_iterate_phdr(find_runtime, search));
}

static const struct runtime *known_at(uintptr_t base)
{
    unsigned count = atomic_load_explicit(&all.count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (all.each[i].base == base)
            return &all.each[i];
    return NULL;
}

void runtimes_begin_child(void)
{
    atomic_flag_clear_explicit(&all.is_busy, memory_order_release);
}

/* Another libgomp may be where one was unloaded: it is read again. */
static const struct runtime *note_runtime(const struct object *object)
{
    while (atomic_flag_test_and_set_explicit(&all.is_busy, memory_order_acquire))
        os_pause();
    struct runtime *runtime = (struct runtime *)known_at(object->base);
    unsigned count = atomic_load_explicit(&all.count, memory_order_relaxed);
    bool is_new = !runtime && count < RUNTIMES;
    runtime = is_new ? &all.each[count] : runtime;
    void *first = symbol_in(object, NAMES[0]);
    bool is_same = runtime && !is_new && memcmp(&runtime->functions[0], &first, sizeof first) == 0;
    for (int i = 0; runtime && !is_same && i < FUNCTIONS_COUNT; i++) {
        void *function = symbol_in(object, NAMES[i]);
        memcpy(&runtime->functions[i], &function, sizeof function);
    }
    if (is_new) {
        runtime->base = object->base;
        atomic_store_explicit(&all.count, count + 1, memory_order_release);
    }
    atomic_flag_clear_explicit(&all.is_busy, memory_order_release);
    return runtime;
}

const struct module *module_of(uintptr_t address)
{
    static __thread struct module known[KNOWN] __attribute__((tls_model("initial-exec")));
    static __thread unsigned oldest __attribute__((tls_model("initial-exec")));
    unsigned now = atomic_load_explicit(&generation, memory_order_relaxed);
    for (unsigned i = 0; i < KNOWN; i++)
        if (module_has(&known[i], address) && known[i].generation == now)
            return &known[i];
    struct search search = {.address = address};
    const struct runtime *runtime = search_runtime(&search) ? note_runtime(&search.runtime) : NULL;
    if (!runtime) {
        line_print("an OpenMP function was called, but no libgomp is loaded");
        os_end(127);
    }
    struct module *module = &known[oldest++ % KNOWN];
    *module = search.module;
    module->runtime = runtime;
    module->generation = now;
    return module;
}

any_function *runtime_function(const struct runtime *runtime, enum function function)
{
    if (!runtime->functions[function]) {
        line_print("symbol lookup error: undefined symbol: %s", NAMES[function]);
        os_end(127);
    }
    return runtime->functions[function];
}
