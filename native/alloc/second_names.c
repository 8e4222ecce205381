/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The second names that the C library has for its functions. Some programs call these, and give the blocks to `free`. */
#include "names.h"
#ifndef NUMALLOC_PREFIX
#include <malloc.h>
#include <stdlib.h>

EXPORT void *__libc_malloc(size_t bytes)
{
    return malloc(bytes);
}

EXPORT void *__libc_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

EXPORT void *__libc_realloc(void *block, size_t bytes)
{
    return realloc(block, bytes);
}

EXPORT void *__libc_memalign(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

EXPORT void *__libc_valloc(size_t bytes)
{
    return valloc(bytes);
}

EXPORT void *__libc_pvalloc(size_t bytes)
{
    return pvalloc(bytes);
}

EXPORT void __libc_free(void *block)
{
    free(block);
}
#endif
