/* rows     allocates the 300 rows of an array, 32 KiB each, and reads them in a random order */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 300, WORDS = 4096 };

static uint64_t *row[ROWS];

static __attribute__((noinline)) void make_rows(void)
{
    for (int i = 0; i < ROWS; i++) {
        row[i] = malloc(WORDS * sizeof **row);
        for (int k = 0; row[i] && k < WORDS; k++)
            row[i][k] = (uint64_t)k * 7;
    }
}

static __attribute__((noinline)) uint64_t read_rows(long times)
{
    uint64_t at = 1, sum = 0;
    for (long n = 0; n < times; n++) {
        at = (at + sum) * 6364136223846793005u + 1442695040888963407u;
        sum += row[(at >> 40) % ROWS][at >> 52];
    }
    return sum;
}

int main(void)
{
    make_rows();
    printf("%llu\n", (unsigned long long)read_rows(20000000));
    return 0;
}
