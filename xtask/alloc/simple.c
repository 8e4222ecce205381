// Runs of blocks of one size, freed in the order of allocation, then in reverse. A unit is a block.

#include "work.h"

#define RUN 400

static void *repeat(void *argument)
{
    const struct thread *self = argument;
    const struct work *work = self->work;
    void *blocks[RUN];
    long left = work->units / work->threads;
    for (size_t turn = 0; left > 0; turn++) {
        const size_t size = 16 + turn * 16 % 1024;
        for (int i = 0; i < RUN; i++)
            blocks[i] = block_of(size, work->touches);
        for (int i = 0; i < RUN; i++)
            free(blocks[turn % 2 ? i : RUN - 1 - i]);
        left -= RUN;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 20000000);
    run_threads(&work, repeat);
    return done(work.units);
}
