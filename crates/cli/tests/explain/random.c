/* Arrays that are read at random: a variable, a block, and two blocks through one function. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1 << 23 };

static unsigned long table[COUNT], *block, *first, *second;

static __attribute__((noinline)) void *checked_malloc(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory)
        abort();
    return memory;
}

static __attribute__((noinline)) void make_first(void)
{
    first = checked_malloc(sizeof(table));
    first[0] = 1;
}

static __attribute__((noinline)) void make_second(void)
{
    second = checked_malloc(sizeof(table));
    second[0] = 1;
}

static __attribute__((noinline)) unsigned long read_all(const unsigned long *from, unsigned long *state)
{
    unsigned long sum = 0;
    for (int at = 0; at < 2000000; at++) {
        *state = *state * 6364136223846793005ul + 1442695040888963407ul;
        sum += from[*state >> 41];
    }
    return sum;
}

int main(void)
{
    unsigned long state = 1, sum = 0;
    block = malloc(sizeof(table));
    make_first();
    make_second();
    memset(block, 1, sizeof(table));
    memset(table, 1, sizeof(table));
    memset(first, 1, sizeof(table));
    memset(second, 1, sizeof(table));
    for (int round = 0; round < 20; round++)
        sum += read_all(table, &state) + read_all(block, &state) + read_all(first, &state) + read_all(second, &state);
    printf("%lu\n", sum);
    return 0;
}
