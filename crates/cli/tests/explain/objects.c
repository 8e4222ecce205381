/* objects MODE: a program whose time is at one object of a known kind. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 1 << 21, TABLE = 1 << 23 };

struct node {
    struct node *next;
    long rest[7];
};

struct record {
    double x, rest[11];
};

static double table[TABLE];
static _Thread_local double own[TABLE];
static volatile double sink;

static void *allocated(size_t bytes)
{
    char *block = malloc(bytes);
    memset(block, 1, bytes);
    return block;
}

__attribute__((noinline)) static void follow_a_list(void)
{
    struct node *nodes = allocated(ELEMENTS * sizeof *nodes);
    size_t at = 0;
    /* A full cycle without pattern. */
    for (size_t i = 0; i < ELEMENTS; i++) {
        size_t next = (at * 5 + 1234567) % ELEMENTS;
        nodes[at].next = &nodes[next];
        at = next;
    }
    struct node *node = nodes;
    for (long i = 0; i < 20000000; i++)
        node = node->next;
    sink = (double)(uintptr_t)node;
}

__attribute__((noinline)) static void read_one_field(void)
{
    struct record *records = allocated(ELEMENTS * sizeof *records);
    double sum = 0;
    for (int round = 0; round < 150; round++)
        for (size_t i = 0; i < ELEMENTS; i++)
            sum += records[i].x;
    sink = sum;
}

static void read_all(const double *values)
{
    double sum = 0;
    /* Each round begins elsewhere: rounds as long as the time between two samples would show the same lines only. */
    for (size_t round = 0; round < 200; round++) {
        size_t start = round * 2654435761 % TABLE;
        for (size_t i = start; i < TABLE; i++)
            sum += values[i];
        for (size_t i = 0; i < start; i++)
            sum += values[i];
    }
    sink = sum;
}

static void compute(void)
{
    double value = 1;
    for (long i = 0; i < 500000000; i++)
        value = value * 1.0000001 + 1;
    sink = value;
}

int main(int count, char **words)
{
    const char *mode = count > 1 ? words[1] : "";
    if (strcmp(mode, "list") == 0)
        follow_a_list();
    else if (strcmp(mode, "field") == 0)
        read_one_field();
    else if (strcmp(mode, "variable") == 0)
        read_all(memset(table, 1, sizeof table));
    else if (strcmp(mode, "thread-local") == 0)
        read_all(memset(own, 1, sizeof own));
    else if (strcmp(mode, "compute") == 0)
        compute();
    else
        return 2;
    return 0;
}
