// Threads start, free what an earlier thread left, allocate, and end. A unit is a thread.

#include "work.h"

#define BLOCKS 400
#define LARGER 8

static void *left[THREADS][BLOCKS];
static long turn;

static void *strike(void *argument)
{
    const struct thread *self = argument;
    uint64_t state = seed_of(self->index) + (uint64_t)turn;
    void **blocks = left[(self->index + turn) % self->work->threads], *larger[LARGER];
    for (int i = 0; i < LARGER; i++)
        larger[i] = block_of(skewed(&state, 4 * KIB, 64 * KIB), self->work->touches);
    for (int i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
        blocks[i] = block_of(between(&state, 16, 512), self->work->touches);
    }
    for (int i = 0; i < BLOCKS; i += 2) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    for (int i = 0; i < LARGER; i++)
        free(larger[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 6000);
    for (turn = 0; turn < work.units / work.threads; turn++)
        run_threads(&work, strike);
    return done(work.units);
}
