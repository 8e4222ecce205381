// The floor of a sampler of many files: an absolute sleep, then each file read to its end,
// nothing else.
//
// Usage: floor_files TICKS_PER_SECOND SECONDS FILE... [--fifo]
// Prints `name value` lines: cpu_us per tick, missed (share of ticks), files, and bytes of a tick.

#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FILES = 4096 };

static int64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void be_prompt(int fifo)
{
    struct sched_param priority = {.sched_priority = 1};
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    if (fifo && sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
        perror("sched_setscheduler");
        exit(1);
    }
}

static ssize_t read_all(int fd)
{
    static char buffer[65536];
    ssize_t total = 0, got;
    while ((got = pread(fd, buffer, sizeof buffer, total)) > 0)
        total += got;
    return total;
}

int main(int argc, char **argv)
{
    static int files[MOST_FILES];
    const int fifo = argc > 1 && strcmp(argv[argc - 1], "--fifo") == 0;
    const int count = argc - 3 - fifo;
    if (count < 1 || count > MOST_FILES || atol(argv[1]) <= 0 || atol(argv[2]) <= 0) {
        fprintf(stderr, "Usage: floor_files TICKS_PER_SECOND SECONDS FILE... [--fifo]\n");
        return 2;
    }
    const int64_t interval = 1000000000LL / atol(argv[1]);
    const int64_t due_ticks = atol(argv[1]) * atol(argv[2]);
    for (int i = 0; i < count; i++) {
        files[i] = open(argv[3 + i], O_RDONLY | O_CLOEXEC);
        if (files[i] < 0) {
            perror(argv[3 + i]);
            return 1;
        }
    }
    be_prompt(fifo);

    ssize_t bytes = 0;
    int64_t ticks = 0, tick = 1;
    const int64_t start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    while (tick <= due_ticks) {
        const int64_t due = start + tick * interval;
        const struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        bytes = 0;
        for (int i = 0; i < count; i++)
            bytes += read_all(files[i]);
        ticks++;
        tick++;
        const int64_t behind = (now(CLOCK_MONOTONIC) - start - tick * interval) / interval;
        if (behind > 0)
            tick += behind; // ticks whose whole interval went by are missed
    }
    const int64_t spent = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    printf("cpu_us %.3f\n", spent / 1e3 / ticks);
    printf("missed %.6f\n", 1.0 - (double)ticks / due_ticks);
    printf("files %d\n", count);
    printf("bytes %zd\n", bytes);
    return 0;
}
