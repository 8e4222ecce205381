/* Kernels of numerical programs: conjugate gradient, multigrid, Fourier transform, integer sort. */
#ifndef SOLVERS_H
#define SOLVERS_H

#include "arrays.h"
#include <math.h>

/* Sums over all threads: each sets its own, all read all. */
static double partial[THREADS][8];

static double sum_of(struct member *member, double value)
{
    partial[member->index][0] = value;
    pthread_barrier_wait(member->barrier);
    double sum = 0;
    for (int i = 0; i < THREADS; i++)
        sum += partial[i][0];
    pthread_barrier_wait(member->barrier);
    return sum;
}

/* Conjugate gradient. Each row has as many elements, at columns without pattern, and a large one
 * on the diagonal. The main thread touched the vectors. */
enum { ROWS = 1 << 16, EACH = 12, PART = ROWS / THREADS };

static double *element, *x, *r, *p, *q;
static int *column;

static void cg_prepare(void)
{
    element = words((long)ROWS * EACH);
    column = fresh_memory((size_t)ROWS * EACH * sizeof *column);
    x = words(ROWS);
    r = words(ROWS);
    p = words(ROWS);
    q = words(ROWS);
    for (long i = 0; i < ROWS; i++) {
        x[i] = q[i] = 0;
        r[i] = p[i] = 1 + (double)(i % 7);
    }
}

static void cg_touch(struct member *member)
{
    uint64_t random = 88172645463325252u + member->index;
    for (long i = (long)member->index * PART; i < (member->index + 1L) * PART; i++)
        for (long k = i * EACH; k < (i + 1) * EACH; k++) {
            random = next_random(random);
            bool diagonal = k == i * EACH;
            column[k] = diagonal ? (int)i : (int)(random % ROWS);
            element[k] = diagonal ? 64 : 1;
        }
}

static void multiply(long first, long last)
{
    for (long i = first; i < last; i++) {
        double sum = 0;
        for (long k = i * EACH; k < (i + 1) * EACH; k++)
            sum += element[k] * p[column[k]];
        q[i] = sum;
    }
}

static double dot(const double *left, const double *right, long first, long last)
{
    double sum = 0;
    for (long i = first; i < last; i++)
        sum += left[i] * right[i];
    return sum;
}

static void cg_work(struct member *member)
{
    long first = (long)member->index * PART, last = first + PART;
    double rho = sum_of(member, dot(r, r, first, last)), start = rho;
    for (long repeat = 0; repeat < member->repeats; repeat++) {
        multiply(first, last);
        double alpha = rho / sum_of(member, dot(p, q, first, last));
        for (long i = first; i < last; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        double before = rho;
        rho = sum_of(member, dot(r, r, first, last));
        for (long i = first; i < last; i++)
            p[i] = r[i] + rho / before * p[i];
        pthread_barrier_wait(member->barrier);
    }
    results[member->index] = rho < 0.9 * start;
}

/* Two grids: smooth, restrict the residual, smooth, add what was found. The main thread touched
 * the right side. */
enum { EDGE = 96, HALF = EDGE / 2 };

static double *u, *side, *rest, *small, *small_side;

static long at(long edge, long z, long y, long x_)
{
    return (z * edge + y) * edge + x_;
}

static void mg_prepare(void)
{
    long all = (long)EDGE * EDGE * EDGE;
    u = words(all);
    side = words(all);
    rest = words(all);
    small = words(all / 8);
    small_side = words(all / 8);
    for (long i = 0; i < all; i++)
        side[i] = (double)(i % 17) - 8;
}

/* The planes of a thread, without those at the border. */
static long plane(const struct member *member, long edge, bool end)
{
    long place = edge * (member->index + end) / THREADS;
    return place < 1 ? 1 : place > edge - 1 ? edge - 1 : place;
}

static void mg_touch(struct member *member)
{
    for (int half = 0; half < 2; half++) {
        long edge = half ? HALF : EDGE;
        long first = edge * member->index / THREADS, last = edge * (member->index + 1) / THREADS;
        for (long i = first * edge * edge; i < last * edge * edge; i++) {
            (half ? small : u)[i] = 0;
            (half ? small_side : rest)[i] = 0;
        }
    }
}

static double neighbours(const double *grid, long edge, long i)
{
    return grid[i - 1] + grid[i + 1] + grid[i - edge] + grid[i + edge] + grid[i - edge * edge] +
           grid[i + edge * edge];
}

/* The residual of a grid; the sum of its squares. */
static double residual(struct member *member)
{
    double sum = 0;
    for (long z = plane(member, EDGE, false); z < plane(member, EDGE, true); z++)
        for (long y = 1; y < EDGE - 1; y++)
            for (long i = at(EDGE, z, y, 1); i < at(EDGE, z, y, EDGE - 1); i++) {
                rest[i] = side[i] - 6 * u[i] + neighbours(u, EDGE, i);
                sum += rest[i] * rest[i];
            }
    return sum;
}

static void coarse(struct member *member)
{
    for (long z = plane(member, HALF, false); z < plane(member, HALF, true); z++)
        for (long y = 1; y < HALF - 1; y++)
            for (long x_ = 1; x_ < HALF - 1; x_++)
                small_side[at(HALF, z, y, x_)] = rest[at(EDGE, 2 * z, 2 * y, 2 * x_)];
    pthread_barrier_wait(member->barrier);
    for (long z = plane(member, HALF, false); z < plane(member, HALF, true); z++)
        for (long y = 1; y < HALF - 1; y++)
            for (long i = at(HALF, z, y, 1); i < at(HALF, z, y, HALF - 1); i++)
                small[i] = (small_side[i] + neighbours(small, HALF, i)) / 6;
    pthread_barrier_wait(member->barrier);
}

static void mg_work(struct member *member)
{
    double start = sum_of(member, residual(member));
    for (long repeat = 0; repeat < member->repeats; repeat++) {
        coarse(member);
        for (long z = plane(member, EDGE, false); z < plane(member, EDGE, true); z++)
            for (long y = 1; y < EDGE - 1; y++)
                for (long x_ = 1; x_ < EDGE - 1; x_++) {
                    long i = at(EDGE, z, y, x_);
                    u[i] += rest[i] / 8 + small[at(HALF, z / 2, y / 2, x_ / 2)] / 64;
                }
        pthread_barrier_wait(member->barrier);
        residual(member);
        pthread_barrier_wait(member->barrier);
    }
    results[member->index] = sum_of(member, residual(member)) < start;
}

/* Transforms of the rows of a matrix, which is transposed in between. */
enum { LOG_ROW = 9, ROW = 1 << LOG_ROW, ROWS_EACH = ROW / THREADS };

struct complex {
    double re, im;
};

static struct complex *matrix, *turned, root[ROW / 2];

static void fft_prepare(void)
{
    matrix = fresh_memory((size_t)ROW * ROW * sizeof *matrix);
    turned = fresh_memory((size_t)ROW * ROW * sizeof *turned);
    for (long i = 0; i < ROW / 2; i++)
        root[i] = (struct complex){cos(2 * M_PI * i / ROW), -sin(2 * M_PI * i / ROW)};
}

static void fft_touch(struct member *member)
{
    for (long i = (long)member->index * ROWS_EACH * ROW; i < (member->index + 1L) * ROWS_EACH * ROW; i++) {
        matrix[i] = (struct complex){i == 0, 0};
        turned[i] = (struct complex){0, 0};
    }
}

static void transform(struct complex *row)
{
    for (long i = 1, j = 0; i < ROW; i++) {
        long bit = ROW >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j |= bit;
        if (i < j) {
            struct complex moved = row[i];
            row[i] = row[j];
            row[j] = moved;
        }
    }
    for (long half = 1; half < ROW; half *= 2)
        for (long first = 0; first < ROW; first += 2 * half)
            for (long i = 0; i < half; i++) {
                struct complex w = root[i * (ROW / 2 / half)], *low = &row[first + i], *high = low + half;
                struct complex t = {w.re * high->re - w.im * high->im, w.re * high->im + w.im * high->re};
                *high = (struct complex){low->re - t.re, low->im - t.im};
                *low = (struct complex){low->re + t.re, low->im + t.im};
            }
}

static void fft_pass(struct member *member, struct complex *from, struct complex *to)
{
    long first = (long)member->index * ROWS_EACH, last = first + ROWS_EACH;
    for (long row = first; row < last; row++)
        transform(&from[row * ROW]);
    pthread_barrier_wait(member->barrier);
    for (long row = first; row < last; row++)
        for (long i = 0; i < ROW; i++)
            to[row * ROW + i] = from[i * ROW + row];
    pthread_barrier_wait(member->barrier);
}

static void fft_work(struct member *member)
{
    for (long repeat = 0; repeat < member->repeats; repeat++) {
        fft_pass(member, matrix, turned);
        fft_pass(member, turned, matrix);
    }
    /* An odd number of transforms of a peak is flat, an even number a peak again. */
    bool flat = member->repeats % 2;
    double expected = flat ? 1 : member->index ? 0 : pow((double)ROW * ROW, (double)member->repeats / 2);
    double seen = matrix[(long)member->index * ROWS_EACH * ROW].re;
    results[member->index] = fabs(seen / pow((double)ROW * ROW, (double)(member->repeats / 2)) - expected) < 1e-6 ||
                             (!flat && fabs(seen / expected - 1) < 1e-6);
}

/* Integer sort: keys are counted by bucket and thread, and moved to the places of their buckets. */
enum { KEYS = 1 << 21, LOG_BUCKETS = 9, BUCKETS = 1 << LOG_BUCKETS, LOG_KEY = 20, KEYS_EACH = KEYS / THREADS };

static uint32_t *keys, *sorted, count_of[THREADS][BUCKETS];

static void sort_prepare(void)
{
    keys = fresh_memory(KEYS * sizeof *keys);
    sorted = fresh_memory(KEYS * sizeof *sorted);
}

static void sort_touch(struct member *member)
{
    uint64_t random = 88172645463325252u + member->index;
    for (long i = (long)member->index * KEYS_EACH; i < (member->index + 1L) * KEYS_EACH; i++) {
        random = next_random(random);
        keys[i] = random >> (64 - LOG_KEY);
        sorted[i] = 0;
    }
}

static void sort_pass(struct member *member)
{
    long first = (long)member->index * KEYS_EACH, last = first + KEYS_EACH;
    uint32_t place[BUCKETS], *own = count_of[member->index], before = 0;
    memset(own, 0, sizeof count_of[0]);
    for (long i = first; i < last; i++)
        own[keys[i] >> (LOG_KEY - LOG_BUCKETS)]++;
    pthread_barrier_wait(member->barrier);
    for (long bucket = 0; bucket < BUCKETS; bucket++)
        for (long thread = 0; thread < THREADS; thread++) {
            if (thread == member->index)
                place[bucket] = before;
            before += count_of[thread][bucket];
        }
    for (long i = first; i < last; i++)
        sorted[place[keys[i] >> (LOG_KEY - LOG_BUCKETS)]++] = keys[i];
    pthread_barrier_wait(member->barrier);
}

static void sort_work(struct member *member)
{
    for (long repeat = 0; repeat < member->repeats; repeat++)
        sort_pass(member);
    bool rising = true;
    for (long i = (long)member->index * KEYS_EACH + 1; i < (member->index + 1L) * KEYS_EACH; i++)
        rising &= sorted[i - 1] >> (LOG_KEY - LOG_BUCKETS) <= sorted[i] >> (LOG_KEY - LOG_BUCKETS);
    results[member->index] = rising;
}

static double each_expected(long repeats)
{
    (void)repeats;
    return THREADS;
}

#endif
