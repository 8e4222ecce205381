/* returned MIB [--hold SECONDS]
 *
 * Allocates MIB of blocks of 256 KiB and touches them, twice; the second time it frees all but each 16th. Prints
 * `faults N`, page faults of the second time, and `left N` with the blocks that it has. It keeps these while others need
 * memory: what it freed can serve them if its allocator gave it back, or lets the kernel take it. */
#define _GNU_SOURCE
#include "arguments.h"
#include <sys/resource.h>
#include <unistd.h>

#define USAGE "usage: returned MIB [--hold SECONDS]"

enum { BLOCK = 256 << 10, PAGE = 4096, KEPT = 16 };

static void allocate(char **blocks, long count)
{
    for (long i = 0; i < count; i++) {
        blocks[i] = malloc(BLOCK);
        if (!blocks[i])
            fail("no memory for block %ld", i);
        for (size_t at = 0; at < BLOCK; at += PAGE)
            ((volatile char *)blocks[i])[at] = 1;
    }
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

int main(int count, char **words)
{
    long hold = 0;
    if (count == 4 && strcmp(words[2], "--hold") == 0)
        hold = number("SECONDS", words[3], 0, 86400);
    else if (count != 2)
        bad_arguments(USAGE);
    long all = number("MIB", words[1], 1, 65536) * ((1 << 20) / BLOCK), left = 0;
    char **blocks = zeroed(all, sizeof *blocks);
    allocate(blocks, all);
    for (long i = 0; i < all; i++)
        free(blocks[i]);
    long before = faults();
    allocate(blocks, all);
    printf("faults %ld\n", faults() - before);
    for (long i = 0; i < all; i++)
        if (i % KEPT)
            free(blocks[i]);
        else
            left += blocks[i][0];
    printf("left %ld\n", left);
    fflush(stdout);
    sleep(hold);
    return 0;
}
