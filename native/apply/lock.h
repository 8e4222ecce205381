/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A lock of one word; zero is unlocked. Holders need less than a microsecond, mostly. Who waits longer sleeps and looks again, so that
 * to unlock is one store. */
#ifndef APPLY_LOCK_H
#define APPLY_LOCK_H

#include "os.h"
#include <stdatomic.h>

struct lock {
    _Atomic uint32_t word;
};

/* This thread holds all locks: it is between the handlers of a fork, where the program's own may allocate. */
extern __thread bool holds_all_locks __attribute__((tls_model("initial-exec"), visibility("hidden")));

void lock_slowly(struct lock *lock);
/* False if others have it for some ms: a handler may end the process in the middle of a call of this library. */
bool lock_briefly(struct lock *lock);

/* Takes the lock also where this thread holds all. */
static inline void lock_really(struct lock *lock)
{
    uint32_t expected = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &expected, 1, memory_order_acquire, memory_order_relaxed))
        lock_slowly(lock);
}

static inline void unlock_really(struct lock *lock)
{
    atomic_store_explicit(&lock->word, 0, memory_order_release);
}

static inline void lock(struct lock *lock)
{
    if (__builtin_expect(!holds_all_locks, 1))
        lock_really(lock);
}

static inline void unlock(struct lock *lock)
{
    if (__builtin_expect(!holds_all_locks, 1))
        unlock_really(lock);
}

#endif
