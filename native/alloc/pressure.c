/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "pressure.h"
#include "os.h"

enum {
    LOOK_AFTER = 32 << 20, /* bytes */
    /* Percent of the time in which some program waited for memory, in the last ten seconds. */
    HIGH_WAITING = 10,
    /* An eighth of the limit must be free beside what is about to be used. */
    FREE_SHARE = 8,
    /* Of the limit, what is kept; others of the group may need memory while this program does nothing. */
    KEPT_SHARE = 4,
};

static _Atomic size_t since_look;
static _Atomic bool is_high;
static _Atomic size_t most_kept = SIZE_MAX;
static _Atomic uint32_t looked_at;
/* One thread looks at a time; it has the lock of a pool, so no fork is in between. */
static _Atomic bool is_looking;

static void look(size_t bytes)
{
    if (atomic_exchange(&is_looking, true))
        return;
    atomic_store_explicit(&since_look, 0, memory_order_relaxed);
    struct group_memory group;
    bool high = os_memory_waiting() >= HIGH_WAITING, limited = os_group_memory(&group);
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
