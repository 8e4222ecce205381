/* policies [under MODE NODES COMMAND... | later NODE]
 *
 * Where the pages of 16 MiB of large blocks and of 16 MiB of small ones lie: prints
 *
 *   large N0 N1 N2 N3
 *   small N0 N1 N2 N3
 *
 * as pages on nodes 0 to 3. With `under`, this process has a memory policy, bind, prefer or interleave, and becomes COMMAND. With `later`,
 * the thread binds itself to the node after its first blocks, by the function of libnuma if an allocator has it. */
#define _GNU_SOURCE
#include "placement.h"

enum { NODES = 4, LARGE = 4, SMALL = 16384, LARGE_BYTES = 4 << 20, SMALL_BYTES = 1000 };

extern long set_mempolicy(int, const unsigned long *, unsigned long) __attribute__((weak));

static void set_policy(int mode, unsigned long nodes)
{
    long failed = set_mempolicy ? set_mempolicy(mode, &nodes, MAX_NODES + 1)
                                : syscall(SYS_set_mempolicy, mode, &nodes, (unsigned long)MAX_NODES + 1);
    if (failed)
        fail("cannot set a memory policy: %s", strerror(errno));
}

static int mode_of(const char *name)
{
    static const struct {
        const char *name;
        int mode;
    } modes[] = {{"bind", MPOL_BIND}, {"prefer", MPOL_PREFERRED}, {"interleave", MPOL_INTERLEAVE}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(name, modes[i].name) == 0)
            return modes[i].mode;
    fail("there is no policy %s here", name);
}

static void where(const char *name, char **blocks, int count, size_t bytes)
{
    long on[NODES] = {0};
    for (int i = 0; i < count; i++) {
        for (size_t at = 0; at < bytes; at += PAGE) {
            void *page = (void *)((uintptr_t)(blocks[i] + at) & ~(uintptr_t)(PAGE - 1));
            int node = -1;
            if (syscall(SYS_move_pages, 0, 1UL, &page, NULL, &node, 0))
                fail("cannot ask for a page: %s", strerror(errno));
            if (node >= 0 && node < NODES)
                on[node]++;
        }
    }
    printf("%s %ld %ld %ld %ld\n", name, on[0], on[1], on[2], on[3]);
}

static void allocate(char **blocks, int count, size_t bytes)
{
    for (int i = 0; i < count; i++)
        blocks[i] = memset(malloc(bytes), 1, bytes);
}

int main(int count, char **words)
{
    static char *large[LARGE], *small[SMALL];
    if (count > 4 && strcmp(words[1], "under") == 0) {
        set_policy(mode_of(words[2]), strtoul(words[3], NULL, 0));
        execvp(words[4], words + 4);
        fail("%s: %s", words[4], strerror(errno));
    }
    if (count == 3 && strcmp(words[1], "later") == 0) {
        allocate(large, 1, LARGE_BYTES);
        allocate(small, SMALL / 4, SMALL_BYTES);
        set_policy(MPOL_BIND, 1UL << atoi(words[2]));
    }
    allocate(large, LARGE, LARGE_BYTES);
    allocate(small, SMALL, SMALL_BYTES);
    where("large", large, LARGE, LARGE_BYTES);
    where("small", small, SMALL, SMALL_BYTES);
    return 0;
}
