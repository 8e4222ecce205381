// Each thread keeps one deep tree while it builds and frees many shallow ones. A unit is a tree node.

#include "work.h"

#define DEPTH 10
#define KEPT_DEPTH 16

struct node {
    struct node *left, *right;
};

static struct node *tree_of(int depth, uint64_t *state, int touches)
{
    struct node *node = block_of(sizeof *node + between(state, 0, 48), touches);
    node->left = depth ? tree_of(depth - 1, state, touches) : NULL;
    node->right = depth ? tree_of(depth - 1, state, touches) : NULL;
    return node;
}

static void clear(struct node *node)
{
    if (!node)
        return;
    clear(node->left);
    clear(node->right);
    free(node);
}

static void *build(void *argument)
{
    const struct thread *self = argument;
    const struct work *work = self->work;
    uint64_t state = seed_of(self->index);
    struct node *kept = tree_of(KEPT_DEPTH, &state, work->touches);
    for (long left = work->units / work->threads - (2 << KEPT_DEPTH); left > 0; left -= 2 << DEPTH)
        clear(tree_of(DEPTH, &state, work->touches));
    clear(kept);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 20000000);
    run_threads(&work, build);
    return done(work.units);
}
