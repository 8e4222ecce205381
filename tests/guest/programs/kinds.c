/* kinds
 *
 * How many CPUs this program has and where its memory comes from, for a C library of any kind: the
 * main thread before and after it made threads, and two threads one after the other:
 *
 *   main cpus 4 policy 2 nodes 1
 *   thread cpus 1 policy 2 nodes 1
 *
 * The policy is the kernel's number, the nodes are those of its mask. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WORDS = 16, BITS = 64 };

static void *look(void *name)
{
    cpu_set_t cpus;
    unsigned long nodes[WORDS] = {0};
    int mode = -1;
    if (sched_getaffinity(0, sizeof cpus, &cpus))
        exit(1);
    /* Where the kernel has no such call, there is no policy to tell. */
    syscall(SYS_get_mempolicy, &mode, nodes, (unsigned long)WORDS * BITS, NULL, 0);
    printf("%s cpus %d policy %d nodes", (const char *)name, CPU_COUNT(&cpus), mode);
    for (int node = 0; node < WORDS * BITS; node++)
        if (nodes[node / BITS] >> node % BITS & 1)
            printf(" %d", node);
    printf("\n");
    return name;
}

int main(void)
{
    pthread_t thread;
    look("main");
    for (int round = 0; round < 2; round++)
        if (pthread_create(&thread, NULL, look, "thread") || pthread_join(thread, NULL))
            return 1;
    look("main");
    return 0;
}
