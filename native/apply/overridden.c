/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the program says itself of memory that is an object's. Inline system calls escape. */
#define _GNU_SOURCE
#include "base/calls.h"
#include "functions.h"
#include "mapping.h"
#include "space.h"
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

long mbind(void *from, unsigned long bytes, int mode, const unsigned long *nodes, unsigned long bits, unsigned flags);

static bool count(const struct object *object)
{
    if (object)
        count_up(&cure.table->header.overridden, 1);
    return object;
}

/* Also where memory is only touched from its nodes: the call would be refused too. */
static bool is_policy_left_out(uintptr_t from, size_t bytes)
{
    struct object *object = cure.table ? object_at(from, bytes) : NULL;
    return object && object_has_nodes(object) && count(object);
}

static bool is_advice_left_out(uintptr_t from, size_t bytes, int advice)
{
    if (!cure.table || (advice != MADV_HUGEPAGE && advice != MADV_NOHUGEPAGE))
        return false;
    struct object *object = object_at(from, bytes);
    return object && object->pages == (advice == MADV_HUGEPAGE ? PAGES_SMALL : PAGES_HUGE) && count(object);
}

PUBLIC long mbind(void *from, unsigned long bytes, int mode, const unsigned long *nodes, unsigned long bits, unsigned flags)
{
    if (is_policy_left_out((uintptr_t)from, bytes))
        return 0;
    /* libnuma's, if the program was started with it. */
    __typeof__(&mbind) next = (__typeof__(&mbind))atomic_load(&next_mbind.function);
    if (next)
        return next(from, bytes, mode, nodes, bits, flags);
    return syscall(SYS_mbind, from, bytes, (long)mode, nodes, bits, (unsigned long)flags);
}

PUBLIC int madvise(void *from, size_t bytes, int advice)
{
    if (is_advice_left_out((uintptr_t)from, bytes, advice))
        return 0;
    NEXT_OR(-1, madvise);
    return next(from, bytes, advice);
}

PUBLIC int mprotect(void *from, size_t bytes, int protection)
{
    NEXT_OR(-1, mprotect);
    space_tear(from);
    return next(from, bytes, protection);
}

bool library_leaves_out(long number, long a, long b, long c)
{
    return (number == SYS_mbind && is_policy_left_out((uintptr_t)a, (size_t)b)) ||
           (number == SYS_madvise && is_advice_left_out((uintptr_t)a, (size_t)b, (int)c));
}
