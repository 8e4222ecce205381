// A producer and a consumer with 370 MiB on the way: blocks of 256 B to 512 KiB, every page written. Prints `live_kib`,
// the most that was on the way. A unit is a MiB.

#include "ring.h"

#define LIVE (370 * MIB)
#define BATCH 16

static struct ring ring = RING_OF(RING, LIVE, LIVE - 16 * MIB);

static void *pass(void *argument)
{
    const struct thread *self = argument;
    uint64_t state = seed_of(0);
    struct item batch[BATCH];
    for (int64_t left = self->work->units * (int64_t)MIB; left > 0;) {
        // Both threads have the same sequence.
        for (int i = 0; i < BATCH; i++) {
            batch[i].size = skewed(&state, 256, 512 * KIB);
            left -= (int64_t)batch[i].size;
        }
        if (self->index) {
            ring_take(&ring, batch, BATCH);
            for (int i = 0; i < BATCH; i++)
                free(batch[i].block);
            continue;
        }
        for (int i = 0; i < BATCH; i++) {
            batch[i].block = block_of(batch[i].size, self->work->touches);
            touch_pages(batch[i].block, 0, batch[i].size);
        }
        ring_put(&ring, batch, BATCH);
    }
    if (self->index == 0)
        ring_end(&ring);
    return NULL;
}

int main(int argc, char **argv)
{
    struct work work = work_of(argc, argv, 3000);
    work.threads = 2;
    run_threads(&work, pass);
    printf("live_kib %zu\n", ring.most_bytes / KIB);
    return done(work.units);
}
