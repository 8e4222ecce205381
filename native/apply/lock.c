/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lock.h"

__thread bool holds_all_locks;

enum { SPINS = 100 };

static void spin_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

void lock_slowly(struct lock *lock)
{
    for (int i = 0;; i++) {
        uint32_t expected = 0;
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_weak(&lock->word, &expected, 1))
            return;
        if (i < SPINS)
            spin_pause();
        else
            os_wait(&lock->word, 1);
    }
}
