// A block of 8 MiB is allocated, every page written, and freed, again and again. Prints `loop_faults`, the page faults
// after the first four times. A unit is a block.

#include "work.h"
#include <sys/resource.h>

#define SIZE (8 * MIB)
#define WARM 4

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

static void once(void)
{
    void *block = block_of(SIZE, 0);
    touch_pages(block, 0, SIZE);
    free(block);
}

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 100);
    for (int i = 0; i < WARM; i++)
        once();
    const long before = faults();
    for (long i = 0; i < work.units; i++)
        once();
    printf("loop_faults %ld\n", faults() - before);
    return done(work.units);
}
