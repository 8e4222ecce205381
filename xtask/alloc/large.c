// Every second thread allocates blocks of 1-8 MiB and writes each page, the next one frees them when
// at least 32 MiB wait, at most 48. A unit is a MiB.

#include "ring.h"

static struct ring rings[THREADS / 2];

static void *pass(void *argument)
{
    const struct thread *self = argument;
    struct ring *ring = &rings[self->index / 2];
    uint64_t state = seed_of(self->index / 2);
    long left = self->work->units / (self->work->threads / 2);
    while (left > 0) {
        // Both threads of a pair have the same sequence.
        struct item item = {NULL, between(&state, MIB, 8 * MIB)};
        left -= (long)(item.size / MIB);
        if (self->index % 2 == 0) {
            item.block = block_of(item.size, 0);
            touch_pages(item.block, 0, item.size);
            ring_put(ring, &item, 1);
        } else {
            ring_take(ring, &item, 1);
            free(item.block);
        }
    }
    if (self->index % 2 == 0)
        ring_end(ring);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 6000);
    if (work.threads % 2)
        fail("needs an even number of threads");
    for (int i = 0; i < work.threads / 2; i++)
        rings[i] = (struct ring)RING_OF(RING, 48 * MIB, 32 * MIB);
    run_threads(&work, pass);
    return done(work.units);
}
