/* exhaust NODE MIB [--hold SECONDS]
 *
 * Prefers NODE for MIB of memory, more than it has: the rest is put elsewhere, which the kernel
 * counts as foreign on NODE and as misses on the others. Fails if all of it fitted. */
#define _GNU_SOURCE
#include "placement.h"

#define USAGE "usage: exhaust NODE MIB [--hold SECONDS]"

/* Memory that the whole machine can still give; more would end in a kill, not in a miss. */
static long available_mib(void)
{
    char line[128];
    long kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib >> 10;
}

int main(int count, char **words)
{
    int hold = 0;
    long pages[MAX_NODES] = {0}, elsewhere = 0;
    if (count == 5 && strcmp(words[3], "--hold") == 0) {
        hold = number("SECONDS", words[4], 0, 86400);
        count -= 2;
    }
    if (count != 3)
        bad_arguments(USAGE);
    int node = number("NODE", words[1], 0, MAX_NODES - 1);
    long mib = number("MIB", words[2], 1, 65536);
    if (mib > available_mib())
        fail("%ld MiB are wanted, the whole machine has only %ld MiB left", mib, available_mib());
    size_t bytes = (size_t)mib << 20;
    char *memory = fresh_memory(bytes);
    place_memory(memory, bytes, MPOL_PREFERRED, node, 0);
    touch_pages(memory, bytes);
    count_pages(memory, bytes, pages);
    printf("pid %d\n", getpid());
    print_pages("pages_on_node", pages);
    for (int other = 0; other < MAX_NODES; other++)
        elsewhere += other == node ? 0 : pages[other];
    printf("pages_elsewhere %ld\n", elsewhere);
    if (elsewhere == 0)
        fail("all of it fitted on node %d: give more than %ld MiB", node, mib);
    fflush(stdout);
    sleep(hold);
    return 0;
}
