// Blocks of mixed sizes: every second one survives its round, some go to another thread, and threads begin anew with each
// round. A unit is a block.

#include "work.h"
#include <stdatomic.h>

#define ROUNDS 10
#define KEPT 4096
#define PLACES 1024

static _Atomic(void *) places[PLACES];

static size_t mixed(uint64_t *state)
{
    const size_t percent = between(state, 0, 999);
    if (percent < 900)
        return skewed(state, 16, KIB);
    return percent < 998 ? skewed(state, KIB, 32 * KIB) : skewed(state, 32 * KIB, 256 * KIB);
}

static void *live(void *argument)
{
    const struct thread *self = argument;
    const struct work *work = self->work;
    static _Atomic int round;
    uint64_t state = seed_of(atomic_fetch_add(&round, 1));
    void **kept = calloc(KEPT, sizeof *kept);
    for (long left = work->units / ROUNDS / work->threads; kept && left > 0; left--) {
        void *block = block_of(mixed(&state), work->touches);
        const uint64_t fate = next(&state) >> 32;
        if (fate % 2) {
            free(block);
            continue;
        }
        void **slot = &kept[fate / 2 % KEPT];
        free(*slot);
        *slot = fate % 8 ? block : atomic_exchange(&places[between(&state, 0, PLACES - 1)], block);
    }
    for (int i = 0; kept && i < KEPT; i++)
        free(kept[i]);
    free(kept);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 6000000);
    for (int i = 0; i < ROUNDS; i++)
        run_threads(&work, live);
    return done(work.units);
}
