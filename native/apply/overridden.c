/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the program says itself of memory whose policy the cure has. Inline system calls escape. */
#define _GNU_SOURCE
#include "begin.h"
#include "functions.h"
#include "mapping.h"
#include <errno.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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
    if (NEXT(madvise))
        return NEXT(madvise)(from, bytes, advice);
    errno = ENOSYS;
    return -1;
}

/* Neither function minds arguments that the caller did not give. */
PUBLIC int prctl(int option, ...)
{
    va_list rest;
    va_start(rest, option);
    unsigned long a = va_arg(rest, unsigned long), b = va_arg(rest, unsigned long);
    unsigned long c = va_arg(rest, unsigned long), d = va_arg(rest, unsigned long);
    va_end(rest);
    if (option == PR_SET_SECCOMP)
        filters_change();
    return NEXT(prctl)(option, a, b, c, d);
}

PUBLIC long syscall(long number, ...)
{
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_seccomp && (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER))
        filters_change();
    if (number == SYS_mbind && is_policy_left_out((uintptr_t)a, (size_t)b))
        return 0;
    if (number == SYS_madvise && is_advice_left_out((uintptr_t)a, (size_t)b, (int)c))
        return 0;
    return NEXT(syscall)(number, a, b, c, d, e, f);
}
