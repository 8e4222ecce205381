// A server: each thread replaces random blocks of its table, then ends; its successor takes over another thread's table.
// A unit is a block that is freed and allocated again.

#include "work.h"

#define SLOTS 5000
#define GENERATIONS 10

static void *tables[THREADS][SLOTS];
static int generation;

static void *serve(void *argument)
{
    const struct thread *self = argument;
    const struct work *work = self->work;
    uint64_t state = seed_of(self->index + generation * THREADS);
    void **table = tables[(self->index + generation) % work->threads];
    for (long left = work->units / GENERATIONS / work->threads; left > 0; left--) {
        void **slot = &table[between(&state, 0, SLOTS - 1)];
        free(*slot);
        *slot = block_of(between(&state, 8, 1000), work->touches);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 16000000);
    for (generation = 0; generation < GENERATIONS; generation++)
        run_threads(&work, serve);
    return done(work.units);
}
