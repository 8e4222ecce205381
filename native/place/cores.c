/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cores.h"
#include "settings.h"
#include <errno.h>
#include <stdatomic.h>

/* The byte of CPU 0 in the registry's file; those of the registry itself end long before. These are POSIX
 * locks, so the kernel releases them when the process ends. */
enum { FIRST_BYTE = 1 << 20 };

static atomic_bool taken[MAX_CPUS];
/* Cores before this one are probably taken. */
static atomic_int hint;

static atomic_int descriptor = -1;
static struct identity registry;

/* The first bytes of a registry, as in crates/registry/src/record.rs. */
static const char MAGIC[] = "NUMAKIT CORES 1\n";

/* The descriptor's number may belong to another file, so its content is checked; the registry's path may
 * lead to a newer file. */
static bool is_registry(int file)
{
    return os_begins_with(file, MAGIC, sizeof MAGIC - 1);
}

void cores_begin(void)
{
    int file = settings()->lock_descriptor;
    if (file >= 0 && is_registry(file) && os_identity(file, &registry) == 0)
        atomic_store(&descriptor, file);
}

/* The registry's descriptor; -1 after the program has closed it. */
static int registry_file(void)
{
    struct identity now;
    int file = atomic_load_explicit(&descriptor, memory_order_relaxed);
    if (file >= 0 && (os_identity(file, &now) || now.device != registry.device ||
                      now.number != registry.number)) {
        atomic_store(&descriptor, -1);
        return -1;
    }
    return file;
}

int core_cpu(int core)
{
    return settings()->order[core];
}

static bool take(int core, int file)
{
    bool is_free = false;
    if (!atomic_compare_exchange_strong(&taken[core], &is_free, true))
        return false;
    if (file >= 0 && os_lock(file, FIRST_BYTE + core_cpu(core)) == EAGAIN) {
        atomic_store(&taken[core], false);
        return false;
    }
    return true;
}

int cores_take(void)
{
    int count = settings()->count, file = registry_file();
    int first = atomic_load(&hint);
    for (int step = 0; step < count; step++) {
        int core = (first + step) % count;
        if (take(core, file)) {
            /* If another thread moved it meanwhile, its value is better. */
            atomic_compare_exchange_strong(&hint, &first, (core + 1) % count);
            return core;
        }
    }
    return NO_CORE;
}

int core_of_cpu(int cpu)
{
    for (int core = 0; core < settings()->count; core++)
        if (core_cpu(core) == cpu)
            return core;
    return NO_CORE;
}

int cores_take_cpu(int cpu)
{
    int core = core_of_cpu(cpu);
    return core != NO_CORE && take(core, registry_file()) ? core : NO_CORE;
}

int cores_take_on(int node)
{
    int file = registry_file();
    for (int core = 0; node >= 0 && core < settings()->count; core++)
        if (node_of_cpu(core_cpu(core)) == node && take(core, file))
            return core;
    return cores_take();
}

void cores_release(int core)
{
    if (core == NO_CORE)
        return;
    int file = registry_file();
    /* Other processes first: a thread here that takes the core at once finds its lock released. */
    if (file >= 0)
        os_unlock(file, FIRST_BYTE + core_cpu(core));
    atomic_store(&taken[core], false);
    int first = atomic_load(&hint);
    while (core < first && !atomic_compare_exchange_weak(&hint, &first, core))
        continue;
}

void cores_forget(void)
{
    for (int core = 0; core < settings()->count; core++)
        atomic_store(&taken[core], false);
    atomic_store(&hint, 0);
}
