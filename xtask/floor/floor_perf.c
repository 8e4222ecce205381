// The floor of the sensor `perf`: an absolute sleep, then one read of a group of software
// events for each CPU, nothing else.
//
// Usage: floor_perf TICKS_PER_SECOND SECONDS CONFIG...
// CONFIG is the kernel's number of a software event. Prints `name value` lines: cpu_us per
// tick, missed (share of ticks), groups.

#define _GNU_SOURCE
#include "ticks.h"
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_CPUS = 4096, MAX_EVENTS = 32 };

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
    if (argc < 4 || argc - 3 > MAX_EVENTS || atol(argv[1]) <= 0 || atol(argv[2]) <= 0) {
        fprintf(stderr, "Usage: floor_perf TICKS_PER_SECOND SECONDS CONFIG...\n");
        return 2;
    }
    static int groups[MAX_CPUS];
    const int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int cpu = 0; cpu < cpus && cpu < MAX_CPUS; cpu++)
        groups[cpu] = open_group(cpu, argv + 3, argc - 3);
    prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);

    uint64_t answer[3 + MAX_EVENTS], sum = 0;
    struct ticks ticks = ticks_begin(argv[1], argv[2]);
    for (int64_t due; ticks_wait(&ticks, &due);)
        for (int cpu = 0; cpu < cpus; cpu++)
            if (read(groups[cpu], answer, sizeof answer) > 0)
                sum += answer[3];
    ticks_print(&ticks);
    printf("groups %d\n", cpus);
    return sum == 0;
}
