/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pressure.h"
#include "os.h"
#include <limits.h>
#include <string.h>

enum {
    LOOK_AFTER = 32 << 20, /* bytes */
    /* Percent of the time in which some program waited for memory, in the last ten seconds. */
    HIGH_WAITING = 10,
    /* An eighth of the limit must be free beside what is about to be used. */
    FREE_SHARE = 8,
    /* Of the limit, what is kept; others of the group may need memory while this program does nothing. */
    KEPT_SHARE = 4,
};

/* Bytes. */
struct group_memory {
    size_t used, limit;
};

static _Atomic size_t since_look;
static _Atomic bool is_high;
static _Atomic size_t most_kept = SIZE_MAX;
static _Atomic uint32_t looked_at;
/* One thread looks at a time; it has the lock of a pool, so no fork is in between. */
static _Atomic bool is_looking;

/* Reads a file of a cgroup of version 2. */
static bool read_group_file(const char *group, size_t length, const char *name, char *text, size_t bytes)
{
    static char path[PATH_MAX];
    static const char root[] = "/sys/fs/cgroup";
    if (sizeof root + length + strlen(name) > sizeof path)
        return false;
    memcpy(path, root, sizeof root - 1);
    memcpy(path + sizeof root - 1, group, length);
    strcpy(path + sizeof root - 1 + length, name);
    return os_read(path, text, bytes);
}

static bool group_number(const char *group, size_t length, const char *name, size_t *number)
{
    char text[64];
    return read_group_file(group, length, name, text, sizeof text) && number_at(text, number);
}

/* The part of the group's page cache that the kernel takes first, for any program that needs memory. */
static size_t group_cache(const char *group, size_t length)
{
    static char text[4096];
    static const char name[] = "\ninactive_file ";
    size_t bytes = 0;
    const char *found = read_group_file(group, length, "/memory.stat", text, sizeof text) ? strstr(text, name) : NULL;
    return found && number_at(found + sizeof name - 1, &bytes) ? bytes : 0;
}

static bool memory_of_group(const char *group, size_t length, struct group_memory *memory)
{
    if (!group_number(group, length, "/memory.max", &memory->limit) ||
        !group_number(group, length, "/memory.current", &memory->used))
        return false;
    if (memory->used > memory->limit / 2) {
        size_t cache = group_cache(group, length);
        memory->used -= cache < memory->used ? cache : memory->used;
    }
    return true;
}

static size_t left_of(const struct group_memory *memory)
{
    return memory->limit > memory->used ? memory->limit - memory->used : 0;
}

/* The memory of the cgroup of this process, or of the one above it that has least left, without page cache that is not in use; false if
 * none has a limit or that cannot be read. One thread at a time: its paths are not on the stack, which may be small. */
static bool memory_of_groups(struct group_memory *memory)
{
    static char text[PATH_MAX];
    bool limited = false;
    if (!os_read("/proc/self/cgroup", text, sizeof text))
        return false;
    const char *entry = strstr(text, "0::");
    if (!entry)
        return false;
    const char *group = entry + 3;
    size_t length = strcspn(group, "\n");
    /* The groups above have limits too, such as that of a batch system's job. In a container the last one is its own. */
    do {
        struct group_memory here;
        length -= length == 1;
        if (memory_of_group(group, length, &here) && (!limited || left_of(&here) < left_of(memory))) {
            *memory = here;
            limited = true;
        }
        if (length == 0)
            break;
        do
            length--;
        while (length > 0 && group[length] != '/');
    } while (true);
    return limited;
}

/* The percentage of the last ten seconds in which some program waited for memory; 0 if the kernel does not tell it. */
static unsigned memory_waiting(void)
{
    char text[256];
    size_t percent = 0;
    if (!os_read("/proc/pressure/memory", text, sizeof text))
        return 0;
    const char *found = strstr(text, "avg10=");
    return found && number_at(found + 6, &percent) ? (unsigned)percent : 0;
}

static void look(size_t bytes)
{
    if (atomic_exchange(&is_looking, true))
        return;
    atomic_store_explicit(&since_look, 0, memory_order_relaxed);
    struct group_memory group = {0};
    bool high = memory_waiting() >= HIGH_WAITING, limited = memory_of_groups(&group);
    if (limited && !high) {
        size_t left = group.limit > group.used ? group.limit - group.used : 0;
        high = left < group.limit / FREE_SHARE + bytes;
    }
    atomic_store_explicit(&is_high, high, memory_order_relaxed);
    atomic_store_explicit(&most_kept, limited ? group.limit / KEPT_SHARE : SIZE_MAX, memory_order_relaxed);
    atomic_store(&is_looking, false);
}

void pressure_look(size_t bytes)
{
    if (atomic_fetch_add_explicit(&since_look, bytes, memory_order_relaxed) + bytes >= LOOK_AFTER)
        look(bytes);
}

void pressure_look_at(uint32_t now)
{
    if (atomic_load_explicit(&looked_at, memory_order_relaxed) == now)
        return;
    atomic_store_explicit(&looked_at, now, memory_order_relaxed);
    look(0);
}

size_t pressure_most_kept(void)
{
    return atomic_load_explicit(&most_kept, memory_order_relaxed);
}

bool pressure_is_high(void)
{
    return atomic_load_explicit(&is_high, memory_order_relaxed);
}
