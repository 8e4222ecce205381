/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The allocator behind this library: libnumalloc's functions, or those of the C library. */
#ifndef COUNT_NEXT_H
#define COUNT_NEXT_H

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>

struct next {
    __typeof__(&malloc) malloc;
    __typeof__(&calloc) calloc;
    __typeof__(&free) free;
    __typeof__(&realloc) realloc;
    __typeof__(&memalign) memalign;
    __typeof__(&aligned_alloc) aligned_alloc;
    __typeof__(&posix_memalign) posix_memalign;
    __typeof__(&valloc) valloc;
    __typeof__(&pvalloc) pvalloc;
    __typeof__(&malloc_usable_size) usable; /* NULL if it is not the allocator's own */
};

extern struct next next;

/* Looks them up. False while that goes on: the loader itself may allocate then. */
bool next_find(void);

static inline bool next_is_known(void)
{
    return __builtin_expect(next.malloc != NULL, 1) || next_find();
}

#endif
