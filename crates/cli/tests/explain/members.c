// Reads one member of the elements of an array and of a block, in an order that no cache keeps.
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 3000000, STEP = 7919, ROUNDS = 60 };

struct point {
    double x, y;
    struct point *next;
};

struct cell {
    int key;
    float weight[3];
    long id;
};

static struct point points[COUNT];

__attribute__((noinline)) static double sum_points(void) {
    double sum = 0;
    for (long i = 0; i < COUNT; i++) sum += points[i * STEP % COUNT].y;
    return sum;
}

__attribute__((noinline)) static long sum_cells(const struct cell *cells) {
    long sum = 0;
    for (long i = 0; i < COUNT; i++) sum += cells[i * STEP % COUNT].id;
    return sum;
}

int main(void) {
    struct cell *cells = (struct cell *)malloc(COUNT * sizeof *cells);
    for (long i = 0; i < COUNT; i++) points[i].y = cells[i].id = i;
    double sum = 0;
    for (int round = 0; round < ROUNDS; round++) sum += sum_points() + sum_cells(cells);
    printf("%g\n", sum);
    return 0;
}
