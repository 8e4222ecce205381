/* Programs that wait for an observer before the work that is counted, so that it observes what is
 * counted and nothing else: where NUMAKIT_GATE names a file, NAME.ready is made, and the program
 * goes on when there is a file NAME. */
#ifndef GATE_H
#define GATE_H

#include "arguments.h"
#include <stdio.h>
#include <unistd.h>

static inline void wait_at_gate(void)
{
    const char *name = getenv("NUMAKIT_GATE");
    char ready[256];
    if (!name)
        return;
    snprintf(ready, sizeof ready, "%s.ready", name);
    FILE *file = fopen(ready, "w");
    if (!file || fclose(file))
        fail("cannot create %s", ready);
    while (access(name, F_OK))
        usleep(10000);
}

/* Whether work is still to be done that is not counted: until there is a file that NUMAKIT_UNTIL names. So
 * a program can be changed while it works, and what is counted comes afterwards. */
static inline int is_uncounted(void)
{
    const char *name = getenv("NUMAKIT_UNTIL");
    return name && access(name, F_OK);
}

#endif
