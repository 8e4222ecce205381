/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which MPI is in this process. A program without MPI calls none of these functions, so nothing is looked for. */
#define _GNU_SOURCE
#include "base/newer.h"
#include "os.h"
#include "table.h"
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
/* Behind dlfcn.h, whose dlsym it replaces. */
#include "base/versions.h"

/* Of a library of MPI that a plugin has loaded for itself: mpi4py does that. */
static void *own_library;

/* This library's first and last byte. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* Where all code of the program finds it, which may be a copy in its file, but for functions of this library: the next one. */
static void *find(const char *name)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    if ((uintptr_t)symbol - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start))
        symbol = dlsym(RTLD_NEXT, name);
    return symbol || !own_library ? symbol : dlsym(own_library, name);
}

static int is_mpi(struct dl_phdr_info *library, size_t size, void *path)
{
    const char *slash = strrchr(library->dlpi_name, '/'), *file = slash ? slash + 1 : library->dlpi_name;
    (void)size;
    bool is_it = strncmp(file, "libmpi.so", 9) == 0 || strncmp(file, "libmpich.so", 11) == 0 ||
                 strncmp(file, "libmpi_abi.so", 13) == 0 || strncmp(file, "libmpi_", 7) == 0;
    if (is_it && strstr(file, "fort") == NULL && strstr(file, "mpifh") == NULL)
        *(const char **)path = library->dlpi_name;
    return *(const char **)path != NULL;
}

static void find_own_library(void)
{
    const char *path = NULL;
    __typeof__(&dlopen) open = (__typeof__(&dlopen))dlsym(RTLD_DEFAULT, "dlopen");
    dl_iterate_phdr(is_mpi, &path);
    if (open && path)
        own_library = open(path, RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
}

static bool is_standard(const void *function)
{
    Dl_info about;
    if (!&dladdr || !dladdr(function, &about) || !about.dli_fname)
        return false;
    const char *slash = strrchr(about.dli_fname, '/');
    return strncmp(slash ? slash + 1 : about.dli_fname, "libmpi_abi.so", 13) == 0;
}

static const struct mpi_table *choose(void)
{
    void *function = find("PMPI_Init");
    if (!function) {
        find_own_library();
        function = find("PMPI_Init");
    }
    if (!function)
        return NULL;
    const struct mpi_table *table = find("ompi_mpi_comm_world") ? &table_openmpi
                                    : is_standard(function)     ? &table_standard
                                                                : &table_mpich;
    table->begin(find);
    return table;
}

const struct mpi_table *table_here(void)
{
    static const struct mpi_table *_Atomic chosen;
    static atomic_bool is_busy;
    const struct mpi_table *table = atomic_load_explicit(&chosen, memory_order_acquire);
    if (__builtin_expect(table != NULL, true))
        return table;
    /* Threads may make the first call at the same time. */
    while (atomic_exchange(&is_busy, true))
        os_yield();
    table = atomic_load(&chosen);
    if (!table) {
        table = choose();
        atomic_store_explicit(&chosen, table, memory_order_release);
    }
    atomic_store(&is_busy, false);
    return table;
}
