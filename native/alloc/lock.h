/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A lock of one word. Zero is unlocked, so that zeroed memory is ready. */
#ifndef ALLOC_LOCK_H
#define ALLOC_LOCK_H

#include "os.h"

struct lock {
    _Atomic uint32_t word; /* 0, 1: locked, 2: locked and somebody sleeps */
};

/* This thread holds all locks: it is between the handlers of a fork, where the program's own may allocate. */
extern __thread bool holds_all_locks __attribute__((tls_model("initial-exec")));

/* Holders need less than a microsecond, mostly. */
enum { SPINS = 100 };

static inline void spin_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static inline void lock_slowly(struct lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        uint32_t expected = 0;
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak(&lock->word, &expected, 1))
            return;
        spin_pause();
    }
    while (atomic_exchange(&lock->word, 2) != 0)
        os_wait(&lock->word, 2);
}

static inline void lock(struct lock *lock)
{
    uint32_t expected = 0;
    if (__builtin_expect(holds_all_locks, 0))
        return;
    if (!atomic_compare_exchange_strong_explicit(&lock->word, &expected, 1, memory_order_acquire, memory_order_relaxed))
        lock_slowly(lock);
}

static inline void unlock(struct lock *lock)
{
    if (__builtin_expect(holds_all_locks, 0))
        return;
    if (atomic_exchange_explicit(&lock->word, 0, memory_order_release) == 2)
        os_wake(&lock->word);
}

#endif
