/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "libraries.h"
#include <dlfcn.h>
#include <features.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

/* Names end before ".so", or before a hash that a Python wheel puts behind them; those that end with
 * "_" are beginnings. */
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

static const char *path_of(void *address)
{
#if __GLIBC_PREREQ(2, 35)
    /* Without the loader's lock, which a thread that waits for this one may hold. */
    struct dl_find_object found;
    return _dl_find_object(address, &found) == 0 ? found.dlfo_link_map->l_name : NULL;
#else
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fname : NULL;
#endif
}

enum owner owner_of(void *address)
{
    const char *path = path_of(address);
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *file = slash ? slash + 1 : path;
    for (size_t i = 0; file && i < sizeof LIBRARIES / sizeof *LIBRARIES; i++) {
        const char *name = LIBRARIES[i].name;
        size_t length = strlen(name);
        if (strncmp(file, name, length) == 0 &&
            (name[length - 1] == '_' || file[length] == '.' || file[length] == '-'))
            return LIBRARIES[i].owner;
    }
    return PROGRAM;
}
