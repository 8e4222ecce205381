// calloc of 256 KiB to 16 MiB, four live in each thread: each page is read, must be zero, and is written. A unit is a MiB.

#include "work.h"

#define BLOCKS 4

static void *fill(void *argument)
{
    const struct thread *self = argument;
    uint64_t state = seed_of(self->index);
    char *blocks[BLOCKS] = {0};
    int64_t left = (int64_t)(self->work->units / self->work->threads) * (int64_t)MIB;
    for (int turn = 0; left > 0; turn++) {
        const size_t size = skewed(&state, 256 * KIB, 16 * MIB);
        free(blocks[turn % BLOCKS]);
        char *block = blocks[turn % BLOCKS] = calloc(1, size);
        if (!block)
            fail("no memory");
        for (size_t at = 0; at < size; at += PAGE) {
            if (*(volatile char *)&block[at])
                fail("calloc returned a block that is not zero");
            block[at] = 1;
        }
        left -= (int64_t)size;
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 1500);
    run_threads(&work, fill);
    return done(work.units);
}
