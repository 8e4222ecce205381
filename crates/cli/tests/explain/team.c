// A team of OpenMP: team MODE. It ends after some seconds. With STATIC, its loop is static in the source.
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 400, SECONDS = 2 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) static double add_up(long count) {
    double value = 1;
    for (long n = 0; n < count; n++)
        value = value * 0.9999 + 0.1;
    return value;
}

// A row with more work than the one before, or with as much, or one at which a thread waits for a timer now and then.
static double row(const char *mode, long number) {
    if (!strcmp(mode, "timer") && number < ROWS / 2 && number % 20 == 0)
        usleep(10000);
    return add_up(!strcmp(mode, "triangle") ? number * 500 : 100000);
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    double sum = 0, begin = now();
    int rounds = 0;
    for (; now() - begin < SECONDS; rounds++) {
        // Outside of the loop only the first thread works, or none.
        if (!strcmp(mode, "serial"))
            sum += add_up(30000000);
        if (!strcmp(mode, "idle"))
            usleep(100000);
#ifdef STATIC
#pragma omp parallel for schedule(static) reduction(+ : sum)
#else
#pragma omp parallel for schedule(runtime) reduction(+ : sum)
#endif
        for (long i = 0; i < ROWS; i++)
            sum += row(mode, i);
    }
    printf("sum %g, %d rounds, %.3f s each\n", sum, rounds, (now() - begin) / rounds);
    return 0;
}
