/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lock.h"

__thread bool holds_all_locks;

enum { SPINS = 100, SLEEPS = 5 };

static void spin_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static bool try(struct lock *lock, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        uint32_t expected = 0;
        if (atomic_load_explicit(&lock->word, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&lock->word, &expected, 1))
            return true;
        if (i < SPINS)
            spin_pause();
        else
            os_wait(&lock->word, 1);
    }
    return false;
}

void lock_slowly(struct lock *lock)
{
    while (!try(lock, SPINS + SLEEPS))
        continue;
}

bool lock_briefly(struct lock *lock)
{
    return try(lock, SPINS + SLEEPS);
}
