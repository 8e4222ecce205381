// A compute loop that a recording beside it must not slow down.
//
// Usage: compute THREADS MILLIONS_OF_STEPS; prints `seconds`.

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static double work(long steps, unsigned seed)
{
    double x = 0.5 + seed * 1e-3, sum = 0;
    for (long i = 0; i < steps; i++) {
        x = 3.9 * x * (1 - x); // each step needs the one before, so nothing is optimised away
        sum += x;
    }
    return sum;
}

int main(int argc, char **argv)
{
    if (argc != 3 || atoi(argv[1]) < 1 || atol(argv[2]) < 1) {
        fprintf(stderr, "Usage: compute THREADS MILLIONS_OF_STEPS\n");
        return 2;
    }
    const int threads = atoi(argv[1]);
    const long steps = atol(argv[2]) * 1000000;
    const long pieces = 200;
    double sum = 0;
    const double start = omp_get_wtime();
    // Barriers as in real programs: a thread that is held up holds up all.
    for (long piece = 0; piece < pieces; piece++) {
#pragma omp parallel num_threads(threads) reduction(+ : sum)
        sum += work(steps / pieces, omp_get_thread_num());
    }
    printf("seconds %.6f\nsum %.3f\n", omp_get_wtime() - start, sum);
    return 0;
}
