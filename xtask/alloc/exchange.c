// Every thread allocates batches, leaves them in a shared place and frees the batch it finds there, mostly another
// thread's. A unit is a block.

#include "work.h"
#include <stdatomic.h>

#define BATCH 256
#define PLACES 64

struct batch {
    void *blocks[BATCH];
};

static _Atomic(struct batch *) places[PLACES];

static void clear(struct batch *batch)
{
    for (int i = 0; batch && i < BATCH; i++)
        free(batch->blocks[i]);
    free(batch);
}

static void *exchange(void *argument)
{
    const struct thread *self = argument;
    uint64_t state = seed_of(self->index);
    for (long left = self->work->units / BATCH / self->work->threads; left > 0; left--) {
        struct batch *batch = block_of(sizeof *batch, 0);
        for (int i = 0; i < BATCH; i++)
            batch->blocks[i] = block_of(between(&state, 16, 512), self->work->touches);
        clear(atomic_exchange(&places[between(&state, 0, PLACES - 1)], batch));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 8000000);
    run_threads(&work, exchange);
    return done(work.units);
}
