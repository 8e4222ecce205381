// Touches small pages one after another, with work in between: the program whose first touches are observed.
//
// Usage: faults STEPS_OF_WORK FAULTS; prints `cpu_seconds` and `faults_per_second` of CPU time.

#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096, PAGES = 1 << 14 };

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "Usage: faults STEPS_OF_WORK FAULTS\n");
        return 2;
    }
    const long steps = atol(argv[1]), faults = atol(argv[2]);
    const size_t bytes = (size_t)PAGES * PAGE;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || madvise(memory, bytes, MADV_NOHUGEPAGE))
        return 1;
    const double start = cpu_seconds();
    uint64_t state = 1;
    for (long fault = 0; fault < faults; fault++) {
        const size_t page = (size_t)fault % PAGES;
        if (page == 0 && fault > 0 && madvise(memory, bytes, MADV_DONTNEED))
            return 1;
        memory[page * PAGE] = (char)state;
        for (long step = 0; step < steps; step++)
            state = state * 6364136223846793005u + 1442695040888963407u;
    }
    const double seconds = cpu_seconds() - start;
    printf("cpu_seconds %.6f\nfaults_per_second %.0f\nstate %d\n", seconds, (double)faults / seconds, (int)(state & 1));
    return 0;
}
