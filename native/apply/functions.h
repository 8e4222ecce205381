/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The interposed functions beside the malloc family. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "base/next.h"

#define FUNCTIONS(DO)                                                                                                  \
    DO(malloc_usable_size) DO(mmap64) DO(munmap) DO(mprotect) DO(madvise) DO(mbind)                                          \
    DO(dlopen) DO(dlmopen) DO(dlclose) DO(dlerror) DO(pthread_create)
FUNCTIONS(NEXT_DECLARE)

#endif
