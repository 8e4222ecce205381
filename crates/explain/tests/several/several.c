/* several KIND USED SECONDS: a loop over several arrays of 128 MiB; USED is a sum of 1, 2 and 4, for each of which the loop
 * uses one of them. Prints where each array is, and the nanoseconds of an operation.
 *   loads    1 in order, 2 at random, 4 at random within 32 KiB
 *   stores   1 in order, 2 at random, 4 is written in order
 *   scatter  1 at random, 2 is written at random
 *   triad    1 and 2 in order, 4 is written in order */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LENGTH = 1 << 24, PASS = 1 << 20, SHIFT = 64 - 24, SMALL = 4095 };

/* Apart from one another, so that each is a mapping. */
static double *array(const char *name)
{
    size_t bytes = LENGTH * sizeof(double), apart = 2 << 20;
    char *memory = mmap(NULL, bytes + 2 * apart, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + apart, bytes, PROT_READ | PROT_WRITE))
        exit(1);
    double *values = (double *)(memory + apart);
    for (long i = 0; i < LENGTH; i++)
        values[i] = (double)(i & 255);
    printf("array %s %zu %zu\n", name, (size_t)values, bytes);
    return values;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double *one, *two, *four, sum;
static uint64_t state = 88172645463325252u;
static long position;

#define PASS_OF(WORK)                                   \
    do {                                                \
        uint64_t r = state;                             \
        long i = position;                              \
        double s = 0;                                   \
        for (long n = 0; n < PASS; n++) {               \
            r ^= r << 13;                               \
            r ^= r >> 7;                                \
            r ^= r << 17;                               \
            WORK;                                       \
            i = (i + 1) & (LENGTH - 1);                 \
        }                                               \
        state = r;                                      \
        position = i;                                   \
        sum += s;                                       \
    } while (0)

static void loads(int used)
{
    switch (used) {
    case 7: PASS_OF(s += one[i] + two[r >> SHIFT] + four[r & SMALL]); break;
    case 6: PASS_OF(s += two[r >> SHIFT] + four[r & SMALL]); break;
    case 5: PASS_OF(s += one[i] + four[r & SMALL]); break;
    case 3: PASS_OF(s += one[i] + two[r >> SHIFT]); break;
    default: exit(2);
    }
}

static void stores(int used)
{
    switch (used) {
    case 7: PASS_OF(s += one[i] + two[r >> SHIFT]; four[i] = s); break;
    case 6: PASS_OF(s += two[r >> SHIFT]; four[i] = s); break;
    case 5: PASS_OF(s += one[i]; four[i] = s); break;
    case 3: PASS_OF(s += one[i] + two[r >> SHIFT]); break;
    default: exit(2);
    }
}

static void scatter(int used)
{
    switch (used) {
    case 3: PASS_OF(s += one[r >> SHIFT]; two[r >> 16 & (LENGTH - 1)] = 1); break;
    case 2: PASS_OF(two[r >> 16 & (LENGTH - 1)] = 1); break;
    case 1: PASS_OF(s += one[r >> SHIFT]); break;
    default: exit(2);
    }
}

static void triad(int used)
{
    long first = position, last = first + PASS;
    double s = 0;
    switch (used) {
    case 7: for (long i = first; i < last; i++) four[i] = one[i] + 3 * two[i]; break;
    case 6: for (long i = first; i < last; i++) four[i] = 3 * two[i]; break;
    case 5: for (long i = first; i < last; i++) four[i] = 3 * one[i]; break;
    case 3: for (long i = first; i < last; i++) s += one[i] + 3 * two[i]; break;
    default: exit(2);
    }
    position = last % LENGTH;
    sum += s;
}

int main(int count, char **words)
{
    if (count != 4)
        return 2;
    const char *kinds[] = {"loads", "stores", "scatter", "triad"};
    void (*const passes[])(int) = {loads, stores, scatter, triad};
    int kind = 0;
    while (kind < 4 && strcmp(words[1], kinds[kind]))
        kind++;
    if (kind == 4)
        return 2;
    one = array("one");
    two = array("two");
    four = array("four");
    fflush(stdout);
    double start = now(), seconds = atof(words[3]), ran, operations = 0;
    do {
        passes[kind](atoi(words[2]));
        operations += PASS;
        ran = now() - start;
    } while (ran < seconds);
    printf("ns %.3f\nsum %g\n", ran * 1e9 / operations, sum);
    return 0;
}
