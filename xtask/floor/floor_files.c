// The floor of a sampler: an absolute sleep, then each file read to its end, nothing else.
//
// Usage: floor_files TICKS_PER_SECOND SECONDS FILE... [--fifo]
// Prints `name value` lines: cpu_us per tick, missed (share of ticks), wake_p50_us, wake_p99_us,
// files, and bytes of a tick.

#define _GNU_SOURCE
#include "ticks.h"
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MAX_FILES = 4096 };

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
    static char buffer[65536];
    ssize_t total = 0, got;
    while ((got = pread(fd, buffer, sizeof buffer, total)) > 0)
        total += got;
    return total;
}

int main(int argc, char **argv)
{
    static int files[MAX_FILES];
    const int fifo = argc > 1 && strcmp(argv[argc - 1], "--fifo") == 0;
    const int count = argc - 3 - fifo;
    if (count < 1 || count > MAX_FILES || atol(argv[1]) <= 0 || atol(argv[2]) <= 0) {
        fprintf(stderr, "Usage: floor_files TICKS_PER_SECOND SECONDS FILE... [--fifo]\n");
        return 2;
    }
    for (int i = 0; i < count; i++) {
        files[i] = open(argv[3 + i], O_RDONLY | O_CLOEXEC);
        if (files[i] < 0) {
            perror(argv[3 + i]);
            return 1;
        }
    }
    int64_t *late = calloc(atol(argv[1]) * atol(argv[2]), sizeof *late);
    if (!late) {
        perror("memory");
        return 1;
    }
    be_prompt(fifo);

    ssize_t bytes = 0;
    struct ticks ticks = ticks_begin(argv[1], argv[2]);
    for (int64_t due; ticks_wait(&ticks, &due);) {
        late[ticks.taken - 1] = now(CLOCK_MONOTONIC) - due;
        bytes = 0;
        for (int i = 0; i < count; i++)
            bytes += read_all(files[i]);
    }
    ticks_print(&ticks);
    qsort(late, ticks.taken, sizeof *late, ascending);
    printf("wake_p50_us %.3f\n", late[ticks.taken / 2] / 1e3);
    printf("wake_p99_us %.3f\n", late[ticks.taken * 99 / 100] / 1e3);
    printf("files %d\n", count);
    printf("bytes %zd\n", bytes);
    return 0;
}
