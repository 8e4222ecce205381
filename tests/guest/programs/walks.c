/* walks MIB [NODE]
 *
 * Adds 1 to every line of MIB of memory, again and again until SIGTERM, and says `ready` when it has touched all of them. Before each
 * round it gives back a sixteenth of the memory, and touches it again. With NODE, the memory is on that node, wherever this process
 * runs. */
#define _GNU_SOURCE
#include "lines.h"
#include "placement.h"
#include <signal.h>

#define USAGE "usage: walks MIB [NODE]"

static volatile sig_atomic_t is_over;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

int main(int count, char **words)
{
    if (count < 2 || count > 3)
        bad_arguments(USAGE);
    size_t bytes = number("MIB", words[1], 1, 1024) << 20, fresh = bytes / 16;
    char *memory = fresh_memory(bytes);
    if (count == 3)
        place_memory(memory, bytes, MPOL_BIND, number("NODE", words[2], 0, MAX_NODES - 1), 0);
    write_lines(memory, bytes, 0);
    signal(SIGTERM, end);
    puts("ready");
    fflush(stdout);
    uint64_t rounds = 0;
    do {
        if (madvise(memory, fresh, MADV_DONTNEED))
            fail("cannot give back memory: %s", strerror(errno));
        increment_lines(memory, bytes);
        rounds++;
    } while (!is_over);
    if (read_lines(memory, fresh) != fresh / LINE || read_lines(memory + fresh, bytes - fresh) != (bytes - fresh) / LINE * rounds)
        fail("the memory does not hold what was written");
    return 0;
}
