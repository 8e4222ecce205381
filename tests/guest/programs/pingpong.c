/* pingpong NODEA NODEB LINES ROUNDS
 *
 * A thread on each node; ROUNDS times A and then B reads and writes all of LINES cache lines, which
 * live on NODEA. Each turn but the first finds them in the other's cache, so the number of
 * transfers is known: `transfers_expected CPUNODE OWNERNODE LINES`. LINES must fit in the caches.
 * A thread waits for its turn by spinning, so that the kernel adds nothing; the line it spins on
 * moves twice in a round as well. */
#define _GNU_SOURCE
#include "lines.h"
#include "numakit-mark.h"
#include "placement.h"
#include <pthread.h>

#define USAGE "usage: pingpong NODEA NODEB LINES ROUNDS"

static char *array;
static size_t bytes;
static long rounds;
static _Alignas(LINE) long turn;

static void await(long wanted)
{
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != wanted)
        __builtin_ia32_pause();
}

/* Takes the turns first, first + 2, ... of 2 x rounds. */
static void play(long first)
{
    for (long mine = first; mine < 2 * rounds; mine += 2) {
        await(mine);
        increment_lines(array, bytes);
        __atomic_store_n(&turn, mine + 1, __ATOMIC_RELEASE);
    }
}

static void *other(void *cpu)
{
    bind_to_cpu(*(int *)cpu);
    __atomic_store_n(&turn, -1, __ATOMIC_RELEASE); /* ready */
    play(1);
    return NULL;
}

int main(int count, char **words)
{
    if (count != 5)
        bad_arguments(USAGE);
    int a = number("NODEA", words[1], 0, MAX_NODES - 1);
    int b = number("NODEB", words[2], 0, MAX_NODES - 1);
    long lines = number("LINES", words[3], 1, 1000000);
    rounds = number("ROUNDS", words[4], 1, 1000000);
    bytes = lines * LINE;
    int cpus_a[CPU_SETSIZE], cpus_b[CPU_SETSIZE];
    cpus_of_node(a, cpus_a, CPU_SETSIZE);
    int last = cpus_of_node(b, cpus_b, CPU_SETSIZE) - 1;
    if (cpus_a[0] == cpus_b[last])
        fail("node %d has only CPU %d, both threads would share it", a, cpus_a[0]);
    bind_to_cpu(cpus_a[0]);
    array = fresh_memory(bytes);
    place_memory(array, bytes, MPOL_BIND, a, 0);
    touch_pages(array, bytes);
    pthread_t thread;
    turn = -2;
    if (pthread_create(&thread, NULL, other, &cpus_b[last]))
        fail("cannot start the second thread");
    await(-1);
    NUMAKIT_MARK_BEGIN();
    __atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
    play(0);
    await(2 * rounds);
    NUMAKIT_MARK_END();
    pthread_join(thread, NULL);
    if (read_lines(array, bytes) != (uint64_t)(2 * rounds * lines))
        fail("the lines do not hold what was written: turns overlapped");
    printf("transfers_expected %d %d %ld\n", b, a, rounds * lines);
    if (rounds > 1)
        printf("transfers_expected %d %d %ld\n", a, b, (rounds - 1) * lines);
    return 0;
}
