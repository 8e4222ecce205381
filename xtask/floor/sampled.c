// Work of one thread, to be sampled from within, and the floor of sampling: the same timer with a handler that does
// nothing.
//
// Usage: sampled compute|chain MILLIONS_OF_STEPS [--timer]; prints `cpu_seconds`.

#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, LINES = 1 << 20, PERIOD_NS = 1000000000 / 199 };

static void nothing(int number)
{
    (void)number;
}

static void start_timer(void)
{
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    struct itimerspec times = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    int timer = 0;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    sigaction(SIGRTMIN, &action, NULL);
    if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer) ||
        syscall(SYS_timer_settime, timer, 0, &times, NULL))
        exit(1);
}

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static char *chain(void)
{
    char *memory = aligned_alloc(4096, (size_t)LINE * LINES);
    uint32_t at = 0;
    for (uint32_t i = 0; memory && i < LINES; i++) {
        uint32_t after = (at * 1664525 + 1013904223) % LINES;
        *(void **)(memory + (size_t)at * LINE) = memory + (size_t)after * LINE;
        at = after;
    }
    return memory;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "Usage: sampled compute|chain MILLIONS_OF_STEPS [--timer]\n");
        return 2;
    }
    const long steps = atol(argv[2]) * 1000000;
    const int is_chain = strcmp(argv[1], "chain") == 0;
    void *place = is_chain ? chain() : NULL;
    double x = 0.5, sum = 0;
    if (argc > 3)
        start_timer();
    const double start = cpu_seconds();
    if (is_chain)
        for (long i = 0; i < steps; i++)
            place = *(void **)place;
    else
        for (long i = 0; i < steps; i++) {
            x = 3.9 * x * (1 - x);
            sum += x;
        }
    printf("cpu_seconds %.6f\nsum %.3f %d\n", cpu_seconds() - start, sum, place != NULL);
    return 0;
}
