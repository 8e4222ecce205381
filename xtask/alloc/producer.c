// Every second thread allocates small blocks, the next one frees them. A unit is a block.

#include "ring.h"

#define BATCH 128

static struct ring rings[THREADS / 2];

static void *pass(void *argument)
{
    const struct thread *self = argument;
    struct ring *ring = &rings[self->index / 2];
    uint64_t state = seed_of(self->index);
    struct item batch[BATCH];
    for (long left = self->work->units / BATCH / (self->work->threads / 2); left > 0; left--) {
        if (self->index % 2 == 0) {
            for (int i = 0; i < BATCH; i++) {
                batch[i].size = between(&state, 16, 512);
                batch[i].block = block_of(batch[i].size, self->work->touches);
            }
            ring_put(ring, batch, BATCH);
        } else {
            ring_take(ring, batch, BATCH);
            for (int i = 0; i < BATCH; i++)
                free(batch[i].block);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 4000000);
    if (work.threads % 2)
        fail("needs an even number of threads");
    for (int i = 0; i < work.threads / 2; i++)
        rings[i] = (struct ring)RING_OF(32 * BATCH, SIZE_MAX, 0);
    run_threads(&work, pass);
    return done(work.units);
}
