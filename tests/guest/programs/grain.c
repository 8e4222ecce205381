/* grain [MIB [ROUNDS]]     default 4 4
 *
 * As a parallel Fourier transform does: two arrays of MIB, which all threads fill in parallel, and then
 * ROUNDS times each thread works through its part of the one and writes the other transposed. Between
 * the markers is all of it. The nodes of the pages are told at the end. */
#define _GNU_SOURCE
#include "numakit-mark.h"
#include "placement.h"
#include <omp.h>

#define USAGE "usage: grain [MIB [ROUNDS]]"

enum { SIDE = 8 };

static double *array_of(size_t bytes)
{
    double *array = malloc(bytes);
    if (!array)
        fail("no memory");
    return array;
}

static void print_nodes(const char *name, void *memory, size_t bytes)
{
    long pages[MAX_NODES] = {0};
    char *first = (char *)((uintptr_t)memory / PAGE * PAGE);
    count_pages(first, bytes / PAGE * PAGE, pages);
    printf("%s", name);
    for (int node = 0; node < 4; node++)
        printf(" %ld", pages[node]);
    printf("\n");
}

int main(int count, char **words)
{
    if (count > 3)
        bad_arguments(USAGE);
    size_t bytes = (size_t)(count > 1 ? number("MIB", words[1], 1, 256) : 4) << 20;
    int rounds = count > 2 ? number("ROUNDS", words[2], 1, 100) : 4;
    long values = (long)(bytes / sizeof(double)), columns = values / SIDE;
    NUMAKIT_MARK_BEGIN();
    double *from = array_of(bytes), *to = array_of(bytes);
#pragma omp parallel for schedule(static)
    for (long i = 0; i < values; i++)
        from[i] = to[i] = (double)i;
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static)
        for (long row = 0; row < SIDE; row++)
            for (long column = 0; column < columns; column++)
                to[column / SIDE * SIDE * SIDE + row * SIDE + column % SIDE] = from[row * columns + column] + 1;
        double *other = from;
        from = to;
        to = other;
    }
    NUMAKIT_MARK_END();
    print_nodes("from", from, bytes);
    print_nodes("to", to, bytes);
    printf("threads %d sum %g\n", omp_get_max_threads(), from[values / 2]);
    return 0;
}
