// The floor of a sampler: an absolute sleep, then /proc/vmstat read to its end, nothing else.
//
// Usage: floor_vmstat TICKS_PER_SECOND SECONDS [--fifo]
// Prints `name value` lines: cpu_us per tick, missed (share of ticks), wake_p50_us,
// wake_p99_us, and the bytes of the file.

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

static int64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
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
    static char buffer[16384];
    ssize_t total = 0, got;
    while ((got = pread(fd, buffer, sizeof buffer, total)) > 0)
        total += got;
    return total;
}

int main(int argc, char **argv)
{
    if (argc < 3 || atol(argv[1]) <= 0 || atol(argv[2]) <= 0) {
        fprintf(stderr, "Usage: floor_vmstat TICKS_PER_SECOND SECONDS [--fifo]\n");
        return 2;
    }
    const int64_t interval = 1000000000LL / atol(argv[1]);
    const int64_t due_ticks = atol(argv[1]) * atol(argv[2]);
    int64_t *late = calloc(due_ticks, sizeof *late);
    const int fd = open("/proc/vmstat", O_RDONLY);
    if (!late || fd < 0) {
        perror("/proc/vmstat");
        return 1;
    }
    be_prompt(argc > 3 && strcmp(argv[3], "--fifo") == 0);

    ssize_t bytes = 0;
    int64_t ticks = 0, tick = 1;
    const int64_t start = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
    while (tick <= due_ticks) {
        const int64_t due = start + tick * interval;
        const struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        late[ticks++] = now(CLOCK_MONOTONIC) - due;
        bytes = read_all(fd);
        tick++;
        const int64_t behind = (now(CLOCK_MONOTONIC) - start - tick * interval) / interval;
        if (behind > 0)
            tick += behind; // ticks whose whole interval went by are missed
    }
    const int64_t spent = now(CLOCK_THREAD_CPUTIME_ID) - cpu;

    qsort(late, ticks, sizeof *late, ascending);
    printf("cpu_us %.3f\n", spent / 1e3 / ticks);
    printf("missed %.6f\n", 1.0 - (double)ticks / due_ticks);
    printf("wake_p50_us %.3f\n", late[ticks / 2] / 1e3);
    printf("wake_p99_us %.3f\n", late[ticks * 99 / 100] / 1e3);
    printf("bytes %zd\n", bytes);
    return 0;
}
