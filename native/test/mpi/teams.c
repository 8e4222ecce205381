/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* teams KIND RANKS NODES COUNT SEED
 *
 * COUNT collectives of a team, by chance, without an MPI: KIND is `threads`, which a sanitizer can watch, or `crowded`, threads
 * that sleep as ranks on shared CPUs do. Each rank knows what the result has to be. */
#define _GNU_SOURCE
#include "mpi/team.h"
#include "mpi/slots.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Collectives before the first one are looked for; of one kind, this number one after the other. */
enum { MOST_RANKS = 64, FIRST = 64, RUN = 100, WORDS = LARGEST / sizeof(uint64_t) };

static int ranks, nodes;
static bool is_crowded;
static uint64_t count, seed;
static struct part *parts;
/* By ranks and nodes, the sum of doubles is always the same. */
static double first_sum;

static void fail(const char *what, int rank, uint64_t number)
{
    fprintf(stderr, "rank %d, collective %llu: %s\n", rank, (unsigned long long)number, what);
    exit(1);
}

static uint64_t mixed(uint64_t value)
{
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static uint64_t given(uint64_t number, int rank, size_t at)
{
    return mixed(seed + number * 1000003 + (uint64_t)rank * 1009 + at);
}

static void add_words(const void *in, void *inout, const struct reduction *reduction)
{
    const uint64_t *from = in;
    uint64_t *to = inout;
    for (int i = 0; i < reduction->count; i++)
        to[i] += from[i];
}

static void add_double(const void *in, void *inout, const struct reduction *reduction)
{
    (void)reduction;
    double from, to;
    memcpy(&from, in, sizeof from);
    memcpy(&to, inout, sizeof to);
    to += from;
    memcpy(inout, &to, sizeof to);
}

/* Ranks are early and late. */
static void wander(uint64_t chance)
{
    for (uint64_t i = chance % 64 == 0 ? chance / 64 % 20 : 0; i > 0; i--)
        os_yield();
}

static void do_broadcast(struct team *team, uint64_t number, int words, int root)
{
    uint64_t data[WORDS] = {0};
    for (int i = 0; i < words && team->rank == root; i++)
        data[i] = given(number, root, (size_t)i);
    team_broadcast(team, data, (size_t)words * sizeof *data, root);
    for (int i = 0; i < words; i++)
        if (data[i] != given(number, root, (size_t)i))
            fail("a broadcast gave another value", team->rank, number);
}

static void do_reduce(struct team *team, uint64_t number, int words, int root, bool in_place)
{
    uint64_t in[WORDS] = {0}, out[WORDS];
    struct reduction sum = {.combine = add_words, .count = words};
    for (int i = 0; i < words; i++)
        in[i] = given(number, team->rank, (size_t)i);
    memcpy(out, in, sizeof *in * (size_t)words);
    team_reduce(team, in_place ? out : in, out, (size_t)words * sizeof *in, &sum, root);
    for (int i = 0; i < words && (root == ALL_RANKS || root == team->rank); i++) {
        uint64_t expected = 0;
        for (int rank = 0; rank < ranks; rank++)
            expected += given(number, rank, (size_t)i);
        if (out[i] != expected)
            fail("a reduce gave another sum", team->rank, number);
    }
}

static void do_doubles(struct team *team, uint64_t number, int root)
{
    struct reduction sum = {.combine = add_double, .count = 1};
    double in = 1.0 / (team->rank + 3), out = 0;
    team_reduce(team, &in, &out, sizeof in, &sum, root);
    if ((root == ALL_RANKS || root == team->rank) && memcmp(&out, &first_sum, sizeof out) != 0)
        fail("a sum of doubles has other bits than the first one", team->rank, number);
}

static void *work(void *of_rank)
{
    struct team team = {.rank = (int)(intptr_t)of_rank, .size = ranks, .is_crowded = is_crowded, .parts = parts};
    int of[MOST_RANKS];
    for (int rank = 0; rank < ranks; rank++)
        of[rank] = rank * nodes / ranks;
    if (!groups_begin(&team.groups, of, ranks))
        fail("no memory", team.rank, 0);
    team_begin(&team, FIRST);
    struct reduction sum = {.combine = add_double, .count = 1};
    double in = 1.0 / (team.rank + 3), out = 0;
    team_reduce(&team, &in, &out, sizeof in, &sum, ALL_RANKS);
    if (team.rank == 0)
        first_sum = out;
    team_barrier(&team);
    for (uint64_t number = 1; number <= count; number++) {
        uint64_t chance = mixed(seed ^ number * 7919);
        int root = (int)((chance >> 8) % (uint64_t)ranks), words = (int)((chance >> 24) % (chance >> 20 & 3 ? 8 : WORDS + 1));
        wander(mixed(chance + (uint64_t)team.rank));
        /* Now of all kinds, now of one kind: then lines are used again before all ranks have come. */
        uint64_t turn = number / RUN;
        if (turn % 2)
            root = (int)(mixed(turn) % (uint64_t)ranks);
        switch ((turn % 2 ? mixed(turn) >> 8 : chance) % 5) {
        case 0: team_barrier(&team); break;
        case 1: do_broadcast(&team, number, words, root); break;
        case 2: do_reduce(&team, number, words, root, chance >> 40 & 1); break;
        case 3: do_reduce(&team, number, words, ALL_RANKS, chance >> 40 & 1); break;
        default: do_doubles(&team, number, chance >> 40 & 1 ? root : ALL_RANKS);
        }
    }
    groups_end(&team.groups);
    return NULL;
}

static void nothing(void)
{
}

static void disagree(const char *text)
{
    fputs(text, stderr);
    exit(1);
}

int main(int words, char **word)
{
    if (words != 6 || (ranks = atoi(word[2])) < 2 || ranks > MOST_RANKS || (nodes = atoi(word[3])) < 1) {
        fprintf(stderr, "usage: teams threads|crowded RANKS NODES COUNT SEED\n");
        return 2;
    }
    is_crowded = strcmp(word[1], "crowded") == 0;
    count = strtoull(word[4], NULL, 10);
    seed = strtoull(word[5], NULL, 10);
    team_calls = (struct team_calls){.progress = nothing, .abort = disagree};
    parts = os_allocate(sizeof *parts * (size_t)ranks, 0);
    if (!parts)
        fail("no memory", 0, 0);
    pthread_t threads[MOST_RANKS];
    for (intptr_t rank = 0; rank < ranks; rank++)
        if (pthread_create(&threads[rank], NULL, work, (void *)rank) != 0)
            fail("no thread", (int)rank, 0);
    for (int rank = 0; rank < ranks; rank++)
        pthread_join(threads[rank], NULL);
    printf("%llu collectives of %d ranks were right\n", (unsigned long long)count, ranks);
    return 0;
}
