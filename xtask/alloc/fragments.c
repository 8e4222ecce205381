// Each phase frees four fifths of the blocks at random and allocates others of another size, up to the same live bytes:
// what is left over must not hold memory. Prints `live_kib`, the live bytes at the end of a phase. A unit is a phase.

#include "work.h"

#define BLOCKS 400000
#define LIVE (32 * MIB)

static void *phases(void *argument)
{
    const struct thread *self = argument;
    const struct work *work = self->work;
    static const size_t low[] = {32, 200, 64, 1000, 16, 4000, 128, 20000};
    uint64_t state = seed_of(self->index);
    void **blocks = calloc(BLOCKS, sizeof *blocks);
    size_t *sizes = calloc(BLOCKS, sizeof *sizes), live = 0, count = 0;
    for (long phase = 0; blocks && sizes && phase < work->units; phase++) {
        size_t kept = 0;
        for (size_t i = 0; i < count; i++)
            if (next(&state) >> 33 & 7 && between(&state, 0, 9)) {
                live -= sizes[i];
                free(blocks[i]);
            } else {
                sizes[kept] = sizes[i];
                blocks[kept++] = blocks[i];
            }
        for (count = kept; live < LIVE / (size_t)work->threads && count < BLOCKS; count++) {
            const size_t least = low[phase % 8];
            sizes[count] = between(&state, least, least * 2);
            live += sizes[count];
            blocks[count] = block_of(sizes[count], work->touches);
            touch_pages(blocks[count], 0, sizes[count]);
        }
    }
    while (count)
        free(blocks[--count]);
    free(blocks);
    free(sizes);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 24);
    run_threads(&work, phases);
    printf("live_kib %zu\n", LIVE / KIB);
    return done(work.units);
}
