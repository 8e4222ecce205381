/* ramp [FROM [TO [N [PASSES]]]]     default 32 64 1024 4
 *
 * The sums of N rows of N numbers, PASSES times, by a loop with schedule(runtime): OMP_SCHEDULE says which. Rows are first
 * touched in a loop with schedule(static), each by the member that has it there. All rows have the same number of lines, each of
 * which is fetched once; the first row is added up FROM times while it is in the cache, the last one TO times, those in between
 * accordingly. So the last member works longest with schedule(static). With others, rows are read on other nodes: to end at
 * the same time, members on four nodes have to move 7 % of the rows from 32 to 64, and 15 % from 1 to 64. The checksum is
 * the same with all schedules. */
#define _GNU_SOURCE
#include "numakit-mark.h"
#include "placement.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static double **rows_of(long count)
{
    double **rows = zeroed(count, sizeof *rows);
    size_t bytes = ((size_t)count * sizeof **rows + PAGE - 1) / PAGE * PAGE;
    char *all = mmap(NULL, bytes * (size_t)count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        fail("no memory for %ld rows", count);
    /* A huge page has the rows of several members. */
    madvise(all, bytes * (size_t)count, MADV_NOHUGEPAGE);
#pragma omp parallel for schedule(static)
    for (long row = 0; row < count; row++) {
        rows[row] = (double *)(all + (size_t)row * bytes);
        for (long column = 0; column < count; column++)
            rows[row][column] = (double)(row ^ column);
    }
    return rows;
}

static double sum_of(const double *row, long count, long repeats)
{
    double sum = 0;
    for (long repeat = 0; repeat < repeats; repeat++) {
        for (long column = 0; column < count; column++)
            sum += row[column];
        __asm__ volatile("" : "+m"(sum));
    }
    return sum;
}

int main(int words, char **word)
{
    long from = words > 1 ? atol(word[1]) : 32, to = words > 2 ? atol(word[2]) : 64;
    long count = words > 3 ? atol(word[3]) : 1024, passes = words > 4 ? atol(word[4]) : 4;
    if (from < 1 || to < from || count < 1 || passes < 1)
        fail("usage: ramp [FROM [TO [N [PASSES]]]]");
    double **rows = rows_of(count), *sums = zeroed(count, sizeof *sums), sum = 0;
    long iterations = 0;
    NUMAKIT_MARK_BEGIN();
    for (long pass = 0; pass < passes; pass++) {
#pragma omp parallel for schedule(runtime) reduction(+ : iterations)
        for (long row = 0; row < count; row++) {
            sums[row] += sum_of(rows[row], count, from + (to - from) * row / count);
            iterations++;
        }
    }
    NUMAKIT_MARK_END();
    for (long row = 0; row < count; row++)
        sum += sums[row];
    printf("iterations %ld\nchecksum %.0f\n", iterations, sum);
    return 0;
}
