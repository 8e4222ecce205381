/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The function by which a program sets the memory policy of a thread, as libnuma has it: the policy comes first. A policy that is set
 * by syscall(2) after the thread's first block is not seen. */
#define _GNU_SOURCE
#include "cache.h"
#include "names.h"
#ifndef NUMALLOC_PREFIX

EXPORT long set_mempolicy(int mode, const unsigned long *nodes, unsigned long bits)
{
    long result = os_set_policy(mode, nodes, bits);
    if (result == 0 && cache_mine)
        cache_move(cache_mine);
    return result;
}
#endif
