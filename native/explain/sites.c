/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "sites.h"
#include "allocation.h"
#include "os.h"
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

typedef void *allocate(size_t);
typedef void release(void *);

/* C++'s `new` calls malloc, and its own caller is what is wanted: some words above, by its code. */
enum { FUNCTION_BYTES = 128, MAX_WORDS = 16 };

struct caller {
    uintptr_t code;           /* where `new` begins; 0 without one */
    unsigned words;           /* from the return address of malloc to that of `new` */
};

static _Atomic uint64_t *table;
uint64_t sites_first_page;
static struct caller cpp;
static bool is_measuring;

/* Calls `new` in this frame, so that the word with an address of this function is the one that is sought. */
static __attribute__((noinline)) void *call(allocate *function)
{
    enum { BYTES = 40 };
    void *block = function(BYTES);
    __asm__ volatile("" : : "r"(block) : "memory");
    return block;
}

/* Only the C++ library's own function: a program's would run before the program does. */
static void measure_cpp(void)
{
    allocate *function = (allocate *)(uintptr_t)dlsym(RTLD_DEFAULT, "_Znwm");
    release *delete = (release *)(uintptr_t)dlsym(RTLD_DEFAULT, "_ZdlPv");
    Dl_info of_new, of_delete;
    if (!function || !delete || !dladdr((void *)(uintptr_t)function, &of_new) ||
        !dladdr((void *)(uintptr_t)delete, &of_delete) || of_new.dli_fbase != of_delete.dli_fbase)
        return;
    const char *name = strrchr(of_new.dli_fname, '/');
    name = name ? name + 1 : of_new.dli_fname;
    if (strncmp(name, "libstdc++.so", 12) != 0 && strncmp(name, "libc++", 6) != 0)
        return;
    cpp.code = (uintptr_t)function;
    is_measuring = true;
    own_log.left = -1;
    delete(call(function));
    is_measuring = false;
    if (cpp.words == 0)
        cpp.code = 0;
}

static bool is_cpp(uintptr_t site)
{
    return site - cpp.code < FUNCTION_BYTES && cpp.code;
}

bool sites_measure(const void *frame)
{
    const uintptr_t *words = frame;
    if (!is_measuring)
        return false;
    for (unsigned at = 2; at < MAX_WORDS && is_cpp(words[1]) && cpp.words == 0; at++)
        if (words[at] - (uintptr_t)call < FUNCTION_BYTES)
            cpp.words = at - 1;
    return true;
}

void *sites_begin(void)
{
    if (table)
        return (void *)table;
    void *memory = os_allocate_sparse(SITE_BYTES);
    if (!memory)
        return NULL;
    measure_cpp();
    /* The heap may have grown already, by what glibc asks for at a time. */
    enum { GROWN_PAGES = 40 };
    sites_first_page = ((uint64_t)(uintptr_t)os_heap_end() >> SITE_PAGE_BITS) - GROWN_PAGES;
    table = memory;
    return memory;
}

static uintptr_t site_of(const uintptr_t *words)
{
    return is_cpp(words[1]) ? words[1 + cpp.words] : words[1];
}

/* The entry of a block; NULL if its page has none, and for a new block if another page has its place. */
static _Atomic uint64_t *entry_of(const void *block, bool is_new)
{
    uint64_t page = (uint64_t)(uintptr_t)block >> SITE_PAGE_BITS, mixed = sites_mixed(block), owner;
    uint64_t slot = mixed >> (64 - SITE_PAGES_BITS - SITE_SLOT_BITS) & (SITE_SLOTS - 1);
    if (!table || !page)
        return NULL;
    owner = atomic_load_explicit(&table[slot], memory_order_relaxed);
    if (owner == 0 && is_new && atomic_compare_exchange_strong(&table[slot], &owner, page))
        owner = page;
    if (owner != page)
        return NULL;
    uint64_t granule = ((uintptr_t)block >> SITE_GRANULE_BITS) % SITE_ENTRIES;
    return &table[SITE_SLOTS + slot * SITE_ENTRIES + granule];
}

void sites_add(const void *block, size_t size, const void *frame)
{
    enum { MOST = (1 << SITE_SIZE_BITS) - 1 };
    _Atomic uint64_t *entry = entry_of(block, true);
    if (!entry)
        return;
    uint64_t bytes = size == 0 ? 1 : size < MOST ? size : MOST;
    atomic_store_explicit(entry, (uint64_t)site_of(frame) << SITE_SIZE_BITS | bytes, memory_order_relaxed);
}

void sites_remove(const void *block)
{
    _Atomic uint64_t *entry = entry_of(block, false);
    if (entry)
        atomic_store_explicit(entry, 0, memory_order_relaxed);
}
