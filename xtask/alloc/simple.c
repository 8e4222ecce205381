// Runs of blocks of one size, from one block to many, freed in the order of allocation or in reverse. A unit is a block.

#include "work.h"

#define LONGEST 400

static void *repeat(void *argument)
{
    const struct thread *self = argument;
    const struct work *work = self->work;
    void *blocks[LONGEST];
    uint64_t state = seed_of(self->index);
    long left = work->units / work->threads;
    for (size_t turn = 0; left > 0; turn++) {
        const size_t size = 16 + turn * 16 % 1024;
        const int run = (int)skewed(&state, 1, LONGEST + 1);
        for (int i = 0; i < run; i++)
            blocks[i] = block_of(size, work->touches);
        for (int i = 0; i < run; i++)
            free(blocks[turn % 2 ? i : run - 1 - i]);
        left -= run;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 20000000);
    run_threads(&work, repeat);
    return done(work.units);
}
