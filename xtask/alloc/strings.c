// Words are appended to lines by realloc; lines are copied into a table of chains, which is cleared when it is full.
// A unit is a line.

#include "work.h"

#define CHAINS 4096
#define FULL 20000

struct entry {
    struct entry *next;
    char *line;
};

static char *line_of(uint64_t *state)
{
    size_t length = 0;
    char *line = NULL;
    for (size_t words = between(state, 1, 8); words > 0; words--) {
        const size_t more = between(state, 2, 12);
        line = realloc(line, length + more + 1);
        if (!line)
            fail("no memory");
        memset(line + length, 'a' + (int)words, more);
        length += more;
        line[length] = '\0';
    }
    return line;
}

static void clear(struct entry **chains)
{
    for (int i = 0; i < CHAINS; i++)
        while (chains[i]) {
            struct entry *entry = chains[i];
            chains[i] = entry->next;
            free(entry->line);
            free(entry);
        }
}

static void *build(void *argument)
{
    const struct thread *self = argument;
    const struct work *work = self->work;
    uint64_t state = seed_of(self->index);
    struct entry **chains = calloc(CHAINS, sizeof *chains);
    for (long done = 1; chains && done <= work->units / work->threads; done++) {
        char *line = line_of(&state);
        struct entry *entry = block_of(sizeof *entry, 0), **chain = &chains[between(&state, 0, CHAINS - 1)];
        *entry = (struct entry){*chain, strdup(line)};
        *chain = entry;
        touch(line, strlen(line), work->touches);
        free(line);
        if (done % FULL == 0)
            clear(chains);
    }
    clear(chains);
    free(chains);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 3000000);
    run_threads(&work, build);
    return done(work.units);
}
