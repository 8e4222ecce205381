/* pools MIB [--hold SECONDS]
 *
 * Touches MIB of memory from the pools of huge pages and prints where the pages are. `--hold` keeps it for
 * others to look at. */
#define _GNU_SOURCE
#include "placement.h"

#include <sys/mman.h>

#define USAGE "usage: pools MIB [--hold SECONDS]"

int main(int count, char **words)
{
    int hold = 0;
    if (count == 4 && strcmp(words[2], "--hold") == 0)
        hold = number("SECONDS", words[3], 0, 86400);
    else if (count != 2)
        bad_arguments(USAGE);
    long pages[MAX_NODES] = {0};
    size_t bytes = number("MIB", words[1], 1, 65536) << 20;
    int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, kind, -1, 0);
    if (memory == MAP_FAILED)
        fail("no %zu MiB of huge pages", bytes >> 20);
    touch_pages(memory, bytes);
    count_pages(memory, bytes, pages);
    printf("pid %d\n", getpid());
    print_pages("pages_on_node", pages);
    fflush(stdout);
    sleep(hold);
    return 0;
}
