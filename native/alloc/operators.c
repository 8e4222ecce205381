/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* new and delete of C++, by their mangled names: this library does not need that of C++. */
#define _GNU_SOURCE
#include "names.h"
#include <stddef.h>
#include <stdlib.h>

#ifdef NUMALLOC_PREFIX
void *NAME(malloc)(size_t bytes);
void *NAME(aligned_alloc)(size_t alignment, size_t bytes);
void NAME(free)(void *block);
#endif

/* Of the C++ library, if the program has it. */
#pragma weak _ZSt15get_new_handlerv
#pragma weak _ZSt17__throw_bad_allocv
extern void (*_ZSt15get_new_handlerv(void))(void);
extern void _ZSt17__throw_bad_allocv(void);

static void *take(size_t alignment, size_t bytes)
{
    return alignment ? NAME(aligned_alloc)(alignment, bytes) : NAME(malloc)(bytes);
}

/* Calls the program's handler until there is memory or no handler. It may throw: this file has tables for unwinding. */
static void *take_or_throw(size_t alignment, size_t bytes)
{
    void *block;
    while (!(block = take(alignment, bytes))) {
        void (*handler)(void) = _ZSt15get_new_handlerv ? _ZSt15get_new_handlerv() : NULL;
        if (handler)
            handler();
        else if (_ZSt17__throw_bad_allocv)
            _ZSt17__throw_bad_allocv();
        else
            abort();
    }
    return block;
}

#define NEW(name) EXPORT void *name(size_t bytes)
#define ALIGNED_NEW(name) EXPORT void *name(size_t bytes, size_t alignment)
NEW(_Znwm) { return take_or_throw(0, bytes); }
NEW(_Znam) { return take_or_throw(0, bytes); }
ALIGNED_NEW(_ZnwmSt11align_val_t) { return take_or_throw(alignment, bytes); }
ALIGNED_NEW(_ZnamSt11align_val_t) { return take_or_throw(alignment, bytes); }

/* The forms of new that do not throw are those of the C++ library, which calls the ones above. */

#define DELETE(name, ...) EXPORT void name(void *block, ##__VA_ARGS__)
DELETE(_ZdlPv) { NAME(free)(block); }
DELETE(_ZdaPv) { NAME(free)(block); }
DELETE(_ZdlPvm, size_t bytes) { (void)bytes; NAME(free)(block); }
DELETE(_ZdaPvm, size_t bytes) { (void)bytes; NAME(free)(block); }
DELETE(_ZdlPvRKSt9nothrow_t, const void *nothrow) { (void)nothrow; NAME(free)(block); }
DELETE(_ZdaPvRKSt9nothrow_t, const void *nothrow) { (void)nothrow; NAME(free)(block); }
DELETE(_ZdlPvSt11align_val_t, size_t alignment) { (void)alignment; NAME(free)(block); }
DELETE(_ZdaPvSt11align_val_t, size_t alignment) { (void)alignment; NAME(free)(block); }
DELETE(_ZdlPvmSt11align_val_t, size_t bytes, size_t alignment) { (void)bytes, (void)alignment; NAME(free)(block); }
DELETE(_ZdaPvmSt11align_val_t, size_t bytes, size_t alignment) { (void)bytes, (void)alignment; NAME(free)(block); }
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, size_t alignment, const void *nothrow)
{
    (void)alignment, (void)nothrow;
    NAME(free)(block);
}
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, size_t alignment, const void *nothrow)
{
    (void)alignment, (void)nothrow;
    NAME(free)(block);
}
