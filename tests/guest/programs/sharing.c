/* sharing [THREADS [KIB [REPEATS]]]     default 8 64 3
 *
 * One bound thread for each CPU; in turn each reads and writes all of one array of KIB, REPEATS
 * times round. Every turn but the first finds the lines in the cache of the thread before it:
 * `transfers_expected CPUNODE OWNERNODE LINES` tells how many should move from cache to cache.
 * The array must fit in the caches. Threads sleep until their turn, which adds some lines of the
 * kernel's; for exact numbers see pingpong. */
#define _GNU_SOURCE
#include "lines.h"
#include "team.h"
#include <semaphore.h>

#define USAGE "usage: sharing [THREADS [KIB [REPEATS]]]"

static sem_t *turns;
static int threads;

static void body(struct member *member)
{
    team_begin(member);
    for (long repeat = 0; repeat < member->repeats; repeat++) {
        sem_wait(&turns[member->index]);
        increment_lines(member->shared, member->bytes);
        sem_post(&turns[(member->index + 1) % threads]);
    }
    team_end(member);
}

static void print_transfers(const struct member *team)
{
    long transfers[MAX_NODES][MAX_NODES] = {{0}};
    long lines = team->bytes / LINE;
    for (long turn = 1; turn < threads * team->repeats; turn++)
        transfers[team[turn % threads].node][team[(turn - 1) % threads].node] += lines;
    for (int to = 0; to < MAX_NODES; to++)
        for (int owner = 0; owner < MAX_NODES; owner++)
            if (transfers[to][owner])
                printf("transfers_expected %d %d %ld\n", to, owner, transfers[to][owner]);
}

int main(int count, char **words)
{
    if (count > 4)
        bad_arguments(USAGE);
    threads = count > 1 ? number("THREADS", words[1], 1, 256) : 8;
    struct member equal = {
        .bytes = (count > 2 ? number("KIB", words[2], 4, 65536) : 64) << 10,
        .repeats = count > 3 ? number("REPEATS", words[3], 1, 1000000) : 3,
        .body = body,
    };
    equal.shared = fresh_memory(equal.bytes);
    struct member *team = team_of(threads, equal);
    touch_pages(equal.shared, equal.bytes);
    turns = zeroed(threads, sizeof *turns);
    for (int i = 0; i < threads; i++)
        sem_init(&turns[i], 0, i == 0);
    team_run(team, threads, NULL, 0);
    if (read_lines(equal.shared, equal.bytes) != equal.bytes / LINE * equal.repeats * threads)
        fail("the array does not hold what was written: turns overlapped");
    printf("threads %d\n", threads);
    print_transfers(team);
    return 0;
}
