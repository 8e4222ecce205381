/* received NODES FILE
 *
 * Prints how many lines the CPUs of the first NODES nodes have got from other nodes since it last
 * ran, as their interconnect cards tell it. FILE keeps the sum between two runs; without it, the
 * lines since the machine started are printed. */
#define _GNU_SOURCE
#include "cards.h"
#include <inttypes.h>
#include <stdio.h>

#define USAGE "usage: received NODES FILE"

static uint64_t sum_until(long nodes)
{
    uint64_t sum = 0;
    for (int i = 0; i < total; i++)
        if (cards[i].node < nodes)
            sum += counter(&cards[i], RESPONSES_RECEIVED);
    return sum;
}

static uint64_t kept(const char *name)
{
    uint64_t sum = 0;
    FILE *file = fopen(name, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%" SCNu64, &sum) != 1)
        fail("%s has no number", name);
    fclose(file);
    return sum;
}

static void keep(const char *name, uint64_t sum)
{
    FILE *file = fopen(name, "w");
    if (!file || fprintf(file, "%" PRIu64 "\n", sum) < 0 || fclose(file))
        fail("cannot write %s: %s", name, strerror(errno));
}

int main(int count, char **words)
{
    if (count != 3)
        bad_arguments(USAGE);
    long nodes = number("NODES", words[1], 1, MAX_CARDS);
    find_cards();
    uint64_t before = kept(words[2]), now = sum_until(nodes);
    keep(words[2], now);
    printf("%" PRIu64 "\n", now - before);
    return 0;
}
