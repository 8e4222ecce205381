/* layouts KIND VARIANT [ROUNDS]: one way of using memory that a change of layout mends, and its control. Prints the CPU
 * seconds of the whole program.
 *   random  small|plain|huge|stream
 *                                reads of 1 GiB at random, on small pages, as it comes, or on huge pages; from end to end
 *   list    linked|array         a value of each node of a list in an order without pattern; the values in an array
 *   tree    linked|cached        keys are looked up in a binary tree of pointers; in one that fits the caches
 *   field   records|fields       one of twelve fields of records; the field as an array of its own
 *   matrix  columns|rows         a matrix that is stored by rows, column by column; row by row */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { HUGE = 2 << 20, NODES = 1 << 21, RECORDS = 1 << 21, ROWS = 5792 };

struct node {
    struct node *next, *child[2];
    long key, value, rest[3];
};

struct record {
    double x, rest[11];
};

static volatile double sink;

static void *fresh(size_t bytes, int advice)
{
    char *block = aligned_alloc(HUGE, bytes);
    madvise(block, bytes, advice);
    return memset(block, 1, bytes);
}

__attribute__((noinline)) static void read_at_random(const double *values, size_t count, long rounds)
{
    double sum = 0;
    uint64_t random = 88172645463325252u;
    for (long i = 0; i < rounds * 1000000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        sum += values[(random >> 32) % count];
    }
    sink = sum;
}

__attribute__((noinline)) static void read_all(const double *values, size_t count, long rounds)
{
    double sum = 0;
    /* Each round begins elsewhere: rounds as long as the time between two samples would show the same lines only. */
    for (long round = 0; round < rounds; round++) {
        size_t start = (size_t)round * 2654435761 % count;
        for (size_t i = start; i < count; i++)
            sum += values[i];
        for (size_t i = 0; i < start; i++)
            sum += values[i];
    }
    sink = sum;
}

__attribute__((noinline)) static void follow_the_list(const struct node *first, long rounds)
{
    long sum = 0;
    for (long round = 0; round < rounds; round++)
        for (const struct node *node = first; node; node = node->next)
            sum += node->value;
    sink = (double)sum;
}

static void list(int is_array, long rounds)
{
    if (is_array)
        return read_all(fresh(NODES * sizeof(double), MADV_NORMAL), NODES, rounds);
    struct node *nodes = fresh(NODES * sizeof *nodes, MADV_NORMAL);
    size_t at = 0;
    /* All nodes once, without pattern. */
    for (size_t i = 1; i < NODES; i++) {
        size_t next = (at * 5 + 1234567) % NODES;
        nodes[at].next = &nodes[next];
        at = next;
    }
    nodes[at].next = NULL;
    follow_the_list(nodes, rounds);
}

__attribute__((noinline)) static long look_up(const struct node *node, long key)
{
    while (node && node->key != key)
        node = node->child[key > node->key];
    return node ? node->value : 0;
}

/* The nodes are in an order without pattern. */
static struct node *tree_of(struct node *nodes, long count, long first, long last)
{
    if (first >= last)
        return NULL;
    long middle = first + (last - first) / 2;
    struct node *node = &nodes[(uint64_t)middle * 2654435761 % (uint64_t)count];
    node->key = middle;
    node->child[0] = tree_of(nodes, count, first, middle);
    node->child[1] = tree_of(nodes, count, middle + 1, last);
    return node;
}

static void tree(int is_cached, long rounds)
{
    long count = is_cached ? 1 << 10 : NODES, sum = 0;
    struct node *nodes = fresh(NODES * sizeof *nodes, MADV_NORMAL);
    struct node *root = tree_of(nodes, count, 0, count);
    uint64_t random = 88172645463325252u;
    for (long i = 0; i < rounds * 100000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        sum += look_up(root, (long)((random >> 32) % (uint64_t)count));
    }
    sink = (double)sum;
}

__attribute__((noinline)) static void read_one_field(const struct record *records, long rounds)
{
    double sum = 0;
    for (long round = 0; round < rounds; round++) {
        size_t start = (size_t)round * 2654435761 % RECORDS;
        for (size_t i = 0; i < RECORDS; i++)
            sum += records[(start + i) % RECORDS].x;
    }
    sink = sum;
}

__attribute__((noinline)) static void read_columns(const double *matrix, long rounds)
{
    double sum = 0;
    for (long round = 0; round < rounds; round++)
        for (size_t column = 0; column < ROWS; column++)
            for (size_t row = 0; row < ROWS; row++)
                sum += matrix[row * ROWS + column];
    sink = sum;
}

int main(int count, char **words)
{
    enum { GIB = 1 << 30 };
    const char *kind = count > 2 ? words[1] : "", *variant = count > 2 ? words[2] : "";
    long rounds = count > 3 ? atol(words[3]) : 0;
    int advice = strcmp(variant, "huge") == 0 ? MADV_HUGEPAGE : strcmp(variant, "plain") == 0 ? MADV_NORMAL : MADV_NOHUGEPAGE;
    int is_broken = strcmp(variant, "small") == 0 || strcmp(variant, "linked") == 0 || strcmp(variant, "records") == 0;
    if (strcmp(kind, "random") == 0 && strcmp(variant, "stream") == 0)
        read_all(fresh(GIB, MADV_NOHUGEPAGE), GIB / sizeof(double), rounds ? rounds : 10);
    else if (strcmp(kind, "random") == 0)
        read_at_random(fresh(GIB, advice), GIB / sizeof(double), rounds ? rounds : 80);
    else if (strcmp(kind, "list") == 0)
        list(!is_broken, rounds ? rounds : 20);
    else if (strcmp(kind, "tree") == 0)
        tree(!is_broken, rounds ? rounds : 15);
    else if (strcmp(kind, "field") == 0 && is_broken)
        read_one_field(fresh(RECORDS * sizeof(struct record), MADV_NORMAL), rounds ? rounds : 100);
    else if (strcmp(kind, "field") == 0)
        read_all(fresh(RECORDS * sizeof(double), MADV_NORMAL), RECORDS, rounds ? rounds : 100);
    else if (strcmp(kind, "matrix") == 0 && strcmp(variant, "columns") == 0)
        read_columns(fresh(ROWS * ROWS * sizeof(double), MADV_NORMAL), rounds ? rounds : 10);
    else if (strcmp(kind, "matrix") == 0)
        read_all(fresh(ROWS * ROWS * sizeof(double), MADV_NORMAL), ROWS * ROWS, rounds ? rounds : 60);
    else
        return 2;
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    printf("seconds %.3f\n", (double)used.tv_sec + 1e-9 * (double)used.tv_nsec);
    return 0;
}
