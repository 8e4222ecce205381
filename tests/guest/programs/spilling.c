/* spilling MIB COMMAND     allocates MIB MiB in blocks of 1 MiB on the first CPU, and runs COMMAND meanwhile, in which $PID
 * is this process, and which has no other malloc than its own */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 4096 };

static char *volatile kept[MOST];

int main(int count, char **words)
{
    int blocks = count == 3 ? atoi(words[1]) : 0;
    if (blocks < 1 || blocks > MOST) {
        fputs("usage: spilling MIB COMMAND, with at most 4096 MiB\n", stderr);
        return 2;
    }
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    if (sched_setaffinity(0, sizeof first, &first) != 0) {
        perror("spilling: sched_setaffinity");
        return 1;
    }
    for (int i = 0; i < blocks; i++) {
        kept[i] = malloc(1 << 20);
        if (!kept[i])
            return 1;
        memset(kept[i], 1, 1 << 20);
    }
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (setenv("PID", pid, 1) != 0 || unsetenv("LD_PRELOAD") != 0)
        return 1;
    return system(words[2]) == 0 ? 0 : 1;
}
