/* triangle [N [PASSES]]     default 768 6
 *
 * The sums of the rows of a lower triangular matrix of N rows, PASSES times, by a loop with schedule(runtime): OMP_SCHEDULE
 * says which. Rows are first touched in a loop with schedule(static), each by the member that has it there, and each row is
 * pages of its own. Iterations get longer towards the end: with schedule(static) the last member works longest, with others
 * rows are read on other nodes. The checksum is the same with all of them. */
#define _GNU_SOURCE
#include "numakit-mark.h"
#include "placement.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

static double **rows_of(long count)
{
    double **rows = zeroed(count, sizeof *rows);
    for (long row = 0; row < count; row++)
        if (posix_memalign((void **)&rows[row], PAGE, (size_t)count * sizeof **rows))
            fail("no memory for row %ld", row);
#pragma omp parallel for schedule(static)
    for (long row = 0; row < count; row++)
        for (long column = 0; column < count; column++)
            rows[row][column] = (double)(row ^ column);
    return rows;
}

int main(int words, char **word)
{
    long count = words > 1 ? atol(word[1]) : 768, passes = words > 2 ? atol(word[2]) : 6;
    if (count < 1 || passes < 1)
        fail("usage: triangle [N [PASSES]]");
    double **rows = rows_of(count), *sums = zeroed(count, sizeof *sums), sum = 0;
    long chunks = 0;
    NUMAKIT_MARK_BEGIN();
    for (long pass = 0; pass < passes; pass++) {
#pragma omp parallel for schedule(runtime) reduction(+ : chunks)
        for (long row = 0; row < count; row++) {
            double of_row = 0;
            for (long column = 0; column <= row; column++)
                of_row += rows[row][column];
            sums[row] += of_row;
            chunks++;
        }
    }
    NUMAKIT_MARK_END();
    for (long row = 0; row < count; row++)
        sum += sums[row];
    printf("iterations %ld\nchecksum %.0f\n", chunks, sum);
    return 0;
}
