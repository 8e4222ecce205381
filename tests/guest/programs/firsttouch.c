/* firsttouch NODE MIB CPUNODE [bind|preferred|default] [--hold SECONDS]     default policy: bind
 *
 * A CPU of CPUNODE touches MIB of fresh memory under a policy for NODE (`default` has none: first
 * touch decides) and prints where the pages are. `--hold` keeps them and the process for others to
 * look at. */
#define _GNU_SOURCE
#include "placement.h"

#define USAGE "usage: firsttouch NODE MIB CPUNODE [bind|preferred|default] [--hold SECONDS]"

int main(int count, char **words)
{
    int hold = 0, policy = MPOL_BIND;
    long pages[MAX_NODES] = {0};
    if (count > 5 && strcmp(words[count - 2], "--hold") == 0) {
        hold = number("SECONDS", words[count - 1], 0, 86400);
        count -= 2;
    }
    if (count < 4 || count > 5)
        bad_arguments(USAGE);
    if (count == 5 && strcmp(words[4], "preferred") == 0)
        policy = MPOL_PREFERRED;
    else if (count == 5 && strcmp(words[4], "default") == 0)
        policy = MPOL_DEFAULT;
    else if (count == 5 && strcmp(words[4], "bind"))
        bad_arguments(USAGE);
    int node = number("NODE", words[1], 0, MAX_NODES - 1);
    size_t bytes = number("MIB", words[2], 1, 65536) << 20;
    bind_to_cpu(first_cpu_of_node(number("CPUNODE", words[3], 0, MAX_NODES - 1)));
    char *memory = fresh_memory(bytes);
    if (policy != MPOL_DEFAULT)
        place_memory(memory, bytes, policy, node, 0);
    touch_pages(memory, bytes);
    count_pages(memory, bytes, pages);
    printf("pid %d\n", getpid());
    print_pages("pages_on_node", pages);
    fflush(stdout);
    if (policy == MPOL_BIND && pages[node] != (long)(bytes / PAGE))
        fail("%ld of %zu pages are on node %d", pages[node], bytes / PAGE, node);
    sleep(hold);
    return 0;
}
