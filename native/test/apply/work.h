/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What programs under a cure check about their memory. */
#ifndef WORK_H
#define WORK_H

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            dprintf(2, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                       \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Sizes of blocks of sites are odd: by them the test finds the sites. */
enum { LARGE = 1000001, SMALL_BLOCK = 97, PARTS = 64 };

/* Not with the spy, which sets no policy, nor where policies are refused. */
static inline bool has_policies(void)
{
    return !getenv("SPY") && !getenv("REFUSED");
}

/* The mode of the policy of an address; MPOL_DEFAULT without one. */
static inline int mode_at(const void *address)
{
    int mode = -1;
    CHECK(syscall(SYS_get_mempolicy, &mode, NULL, 0UL, address, (unsigned long)MPOL_F_ADDR) == 0);
    return mode;
}

static inline const char *part_of(const void *block, size_t size, int part)
{
    return (const char *)block + size / PARTS * (size_t)part + size / (2 * PARTS);
}

/* Whether the first and third quarter have a policy, and the others none. */
static inline bool has_quarters(const void *block, size_t size)
{
    for (int part = 0; part < PARTS; part++) {
        bool wanted = part / (PARTS / 4) % 2 == 0;
        if (has_policies() && mode_at(part_of(block, size, part)) != (wanted ? MPOL_PREFERRED : MPOL_DEFAULT))
            return false;
    }
    return true;
}

static inline bool has_mode(const void *block, size_t size, int mode)
{
    for (int part = 0; part < PARTS; part++)
        if (has_policies() && mode_at(part_of(block, size, part)) != mode)
            return false;
    return true;
}

#endif
