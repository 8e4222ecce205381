// The floor of the sensor `perf`: an absolute sleep, then one read of a group of software
// events for each CPU, nothing else.
//
// Usage: floor_perf TICKS_PER_SECOND SECONDS CONFIG...
// CONFIG is the kernel's number of a software event. Prints `name value` lines: cpu_us per
// tick, missed (share of ticks), groups.

#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CPUS = 4096, MOST_EVENTS = 32 };

static int64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int open_group(int cpu, char **configs, int count)
{
    int leader = -1;
    for (int i = 0; i < count; i++) {
        struct perf_event_attr attr = {
            .type = PERF_TYPE_SOFTWARE,
            .size = sizeof attr,
            .config = strtoull(configs[i], NULL, 0),
            .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        };
        const int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, leader, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0) {
            perror("perf_event_open");
            exit(1);
        }
        if (leader < 0)
            leader = fd;
    }
    return leader;
}

int main(int argc, char **argv)
{
    if (argc < 4 || argc - 3 > MOST_EVENTS || atol(argv[1]) <= 0 || atol(argv[2]) <= 0) {
        fprintf(stderr, "Usage: floor_perf TICKS_PER_SECOND SECONDS CONFIG...\n");
        return 2;
    }
    const int64_t interval = 1000000000LL / atol(argv[1]);
    const int64_t due_ticks = atol(argv[1]) * atol(argv[2]);
    static int groups[MOST_CPUS];
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int cpu = 0; cpu < cpus && cpu < MOST_CPUS; cpu++)
        groups[cpu] = open_group(cpu, argv + 3, argc - 3);
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);

    uint64_t answer[3 + MOST_EVENTS], sum = 0;
    int64_t ticks = 0, tick = 1;
    const int64_t start = now(CLOCK_MONOTONIC), cpu_start = now(CLOCK_THREAD_CPUTIME_ID);
    while (tick <= due_ticks) {
        const int64_t due = start + tick * interval;
        const struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        for (int cpu = 0; cpu < cpus; cpu++)
            if (read(groups[cpu], answer, sizeof answer) > 0)
                sum += answer[3];
        ticks++;
        tick++;
        const int64_t behind = (now(CLOCK_MONOTONIC) - start - tick * interval) / interval;
        if (behind > 0)
            tick += behind; // ticks whose whole interval went by are missed
    }
    const int64_t spent = now(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
    printf("cpu_us %.3f\n", spent / 1e3 / ticks);
    printf("missed %.6f\n", 1.0 - (double)ticks / due_ticks);
    printf("groups %d\n", cpus);
    return sum == 0;
}
