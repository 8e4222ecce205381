/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "libraries.h"
#include "base/newer.h"
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Names end before ".so", or before a hash that a Python wheel appends; those that end with "_" are
 * prefixes. */
static const struct {
    const char *name;
    enum owner owner;
} LIBRARIES[] = {
    {"libgomp", OPENMP_OF_GCC},
    {"libomp", BINDING_RUNTIME},
    {"libiomp5", BINDING_RUNTIME},
    {"libopen-pal", HELPERS},
    {"libpmix", HELPERS},
    {"libmpi", HELPERS},
    {"libmpich", HELPERS},
    {"libopen-rte", HELPERS},
    /* Open MPI's and PMIx's plugins. */
    {"mca_", HELPERS},
    {"pmix_mca_", HELPERS},
    {"libuct", HELPERS},
    {"libucs", HELPERS},
    {"libfabric", HELPERS},
    {"libpsm2", HELPERS},
    {"libcuda", HELPERS},
    {"libnccl", HELPERS},
    {"libjvm", HELPERS},
    {"libjli", HELPERS},
    /* Progress threads of PMIx and Open MPI are started by the event loop's library. */
    {"libevent_pthreads", HELPERS},
};

static enum owner owner_by_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES; i++) {
        const char *name = LIBRARIES[i].name;
        size_t length = strlen(name);
        if (strncmp(file, name, length) == 0 &&
            (name[length - 1] == '_' || file[length] == '.' || file[length] == '-'))
            return LIBRARIES[i].owner;
    }
    return PROGRAM;
}

struct search {
    uintptr_t address;
    enum owner owner;
};

static int has_address(struct dl_phdr_info *library, size_t size, void *data)
{
    struct search *search = data;
    (void)size;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            search->address - library->dlpi_addr - segment->p_vaddr < segment->p_memsz) {
            search->owner = owner_by_path(library->dlpi_name);
            return 1;
        }
    }
    return 0;
}

/* Does not take the loader's lock, which a thread that waits for the new one may hold. */
enum owner owner_of(void *address)
{
    struct search search = {.address = (uintptr_t)address, .owner = PROGRAM};
    struct found_object object;
    if (!newer()->find_object)
        /* This takes another lock, which is held only while the list of libraries changes. */
        dl_iterate_phdr(has_address, &search);
    else if (newer()->find_object(address, &object) == 0)
        search.owner = owner_by_path(object.library->l_name);
    return search.owner;
}
