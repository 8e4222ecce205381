/* handed COMMAND     runs COMMAND, in which %d is this process, while its memory is as follows
 *
 * A thread on the first CPU allocates 20000 blocks of 100 bytes, and one of 8 MiB that is kept. A thread on the last CPU
 * frees the small ones and keeps a block of 4 MiB. Both threads have ended. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 20000, BYTES = 100, FIRST_MIB = 8, LAST_MIB = 4 };

static char *blocks[BLOCKS];
static char *volatile kept[2];

static void run_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        perror("handed: sched_setaffinity");
        exit(1);
    }
}

static char *filled(size_t bytes)
{
    char *block = malloc(bytes);
    if (!block)
        exit(1);
    return memset(block, 1, bytes);
}

static void *take(void *none)
{
    run_on(0);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = filled(BYTES);
    kept[0] = filled(FIRST_MIB << 20);
    return none;
}

static void *give(void *none)
{
    run_on((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    kept[1] = filled(LAST_MIB << 20);
    return none;
}

int main(int count, char **words)
{
    void *(*const steps[])(void *) = {take, give};
    char command[256];
    if (count != 2 || snprintf(command, sizeof command, words[1], (int)getpid()) >= (int)sizeof command) {
        fputs("usage: handed COMMAND\n", stderr);
        return 2;
    }
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, steps[i], NULL) != 0 || pthread_join(thread, NULL) != 0)
            return 1;
    }
    return system(command) == 0 ? 0 : 1;
}
