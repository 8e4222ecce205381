/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* teams TEAMS MEMBERS: threads that each begin a team of GCC's OpenMP, the main thread last. No CPU belongs to threads of two
 * teams; one team is divided evenly among the two CPUs of the plan. */
#define _GNU_SOURCE
#include "check.h"
#include <omp.h>

enum { MOST = 8 };
int first_cpu, second_cpu;
static int teams, members, cpus[MOST][MOST];
static pthread_barrier_t others_began, together;

static void *begin_team(void *number)
{
    int *own = cpus[(long)number];
    if (number == NULL)
        pthread_barrier_wait(&others_began);
#pragma omp parallel num_threads(members)
    {
        own[omp_get_thread_num()] = only_cpu(pthread_self());
    }
    if (number != NULL)
        pthread_barrier_wait(&others_began);
    /* Cores of threads that end are free again. */
    pthread_barrier_wait(&together);
    return NULL;
}

static void check_pair(int team, int other)
{
    for (int i = 0; i < members * members; i++) {
        int cpu = cpus[team][i / members];
        if (cpu >= 0 && cpu == cpus[other][i % members]) {
            fprintf(stderr, "members %d and %d of teams %d and %d are on CPU %d\n", i / members, i % members, team, other, cpu);
            exit(1);
        }
    }
}

int main(int count, char **words)
{
    pthread_t threads[MOST];
    CHECK(count == 3 && (teams = atoi(words[1])) <= MOST && (members = atoi(words[2])) <= MOST);
    CHECK(pthread_barrier_init(&others_began, NULL, (unsigned)teams) == 0);
    CHECK(pthread_barrier_init(&together, NULL, (unsigned)teams) == 0);
    for (long team = 1; team < teams; team++)
        CHECK(pthread_create(&threads[team], NULL, begin_team, (void *)team) == 0);
    /* A thread that begins none does not take a place of the main thread's team. */
    struct waiting idle;
    if (teams == 1)
        waiting_begin(&idle, NULL);
    begin_team(NULL);
    if (teams == 1)
        waiting_end(&idle);
    for (int team = 1; team < teams; team++)
        CHECK(pthread_join(threads[team], NULL) == 0);
    for (int pair = 0; pair < teams * teams; pair++)
        if (pair / teams < pair % teams)
            check_pair(pair / teams, pair % teams);
    int on_first = 0;
    for (int member = 0; member < members; member++)
        on_first += cpus[0][member] == cpus[0][0];
    CHECK(cpus[0][0] >= 0 && (teams > 1 || on_first * 2 == members));
    CHECK(teams == 1 || cpus[1][0] >= 0);
    return 0;
}
