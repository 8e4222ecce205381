/* moves PID NODE
 *
 * Moves the present pages of the largest mapping of a process to a node by a plain loop of move_pages, and prints how many of them are
 * there afterwards that were elsewhere, and how long the loop took. */
#define _GNU_SOURCE
#include "arguments.h"
#include "placement.h"
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK = 512 };

static long move(pid_t process, unsigned long count, void **pages, const int *nodes, int *status)
{
    return syscall(SYS_move_pages, process, count, pages, nodes, status, nodes ? MPOL_MF_MOVE : 0);
}

static void largest(pid_t process, uint64_t *start, uint64_t *end)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/maps", process);
    FILE *maps = fopen(path, "r");
    if (!maps)
        fail("cannot read %s", path);
    *start = *end = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx rw", &from, &to) == 2 && to - from > *end - *start)
            *start = from, *end = to;
    }
    fclose(maps);
}

int main(int count, char **words)
{
    if (count != 3)
        bad_arguments("usage: moves PID NODE");
    pid_t process = (pid_t)number("PID", words[1], 1, 1 << 22);
    int node = (int)number("NODE", words[2], 0, MAX_NODES - 1), nodes[CHUNK], status[CHUNK];
    uint64_t start, end;
    long moved = 0;
    void *pages[CHUNK];
    largest(process, &start, &end);
    for (int at = 0; at < CHUNK; at++)
        nodes[at] = node;
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    while (start < end) {
        int some = 0, found = 0;
        for (; some < CHUNK && start < end; start += PAGE)
            pages[some++] = (void *)start;
        if (move(process, some, pages, NULL, status))
            fail("the pages of %d cannot be looked up", process);
        for (int at = 0; at < some; at++)
            if (status[at] >= 0 && status[at] != node)
                pages[found++] = pages[at];
        if (found && move(process, found, pages, nodes, status) < 0)
            fail("the pages of %d cannot be moved", process);
        for (int at = 0; at < found; at++)
            moved += status[at] == node;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("pages %ld\nseconds %.6f\n", moved, (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec));
    return 0;
}
