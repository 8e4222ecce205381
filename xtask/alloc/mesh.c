// Adaptive mesh: blocks of 64 KiB to 20 MiB come, grow by realloc in three of ten steps, and go; every page is written;
// the live bytes are bounded. A unit is a step.

#include "work.h"

#define LEAST (64 * KIB)
#define MOST (20 * MIB)
#define LIVE (112 * MIB)
#define SLOTS 48

struct mesh {
    struct {
        char *block;
        size_t size;
    } slots[SLOTS];
    size_t live;
};

static void drop(struct mesh *mesh, size_t slot)
{
    free(mesh->slots[slot].block);
    mesh->slots[slot].block = NULL;
    mesh->live -= mesh->slots[slot].size;
    mesh->slots[slot].size = 0;
}

// A block of that size, with the contents of the old one.
static void resize(struct mesh *mesh, size_t slot, size_t size)
{
    const size_t old = mesh->slots[slot].size;
    char *block = old ? realloc(mesh->slots[slot].block, size) : malloc(size);
    if (!block || (old && block[0] != 1))
        fail("a block was lost");
    touch_pages(block, old, size);
    mesh->slots[slot].block = block;
    mesh->slots[slot].size = size;
    mesh->live += size - old;
}

static void *refine(void *argument)
{
    const struct thread *self = argument;
    uint64_t state = seed_of(self->index);
    struct mesh mesh = {0};
    for (long left = self->work->units / self->work->threads; left > 0; left--) {
        const size_t slot = between(&state, 0, SLOTS - 1), size = mesh.slots[slot].size;
        if (size && between(&state, 0, 9) < 3) {
            resize(&mesh, slot, size + size * between(&state, 10, 100) / 100);
        } else {
            if (size)
                drop(&mesh, slot);
            resize(&mesh, slot, skewed(&state, LEAST, MOST));
        }
        for (size_t i = slot + 1; mesh.live > LIVE; i++)
            if (i % SLOTS != slot && mesh.slots[i % SLOTS].size)
                drop(&mesh, i % SLOTS);
    }
    for (size_t i = 0; i < SLOTS; i++)
        drop(&mesh, i);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 900);
    run_threads(&work, refine);
    return done(work.units);
}
