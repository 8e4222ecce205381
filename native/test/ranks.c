/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* MPI ranks divide the plan; variables simulate the launcher. */
#define _GNU_SOURCE
#include "check.h"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Ends unless a variable has this value; NULL for an unset one. */
static void check_value(const char *name, const char *expected)
{
    const char *value = getenv(name);
    if (value == expected || (value && expected && strcmp(value, expected) == 0))
        return;
    fprintf(stderr, "%s is %s instead of %s\n", name, value ? value : "unset", expected ? expected : "unset");
    _Exit(1);
}

/* The only CPU of this process is this one, and its environment says so. */
static void check_share(int cpu)
{
    char text[32];
    CHECK(only_cpu(pthread_self()) == cpu);
    snprintf(text, sizeof text, "%d", cpu);
    check_value("NUMA_PLACE", text);
    check_value("NUMA_MASK", text);
    check_value("NUMA_RANKS", "0");
    snprintf(text, sizeof text, "{%d}", cpu);
    check_value("OMP_PLACES", text);
    /* A thread that is one too many has the CPUs of the rank, not those of others. */
    struct waiting one;
    waiting_begin(&one, NULL);
    CHECK(only_cpu(pthread_self()) == cpu && only_cpu(one.id) == cpu);
    waiting_end(&one);
}

/* This case once more, as a program that it starts. */
static void again(void)
{
    if (getenv("NUMAPLACE_AGAIN"))
        return;
    setenv("NUMAPLACE_AGAIN", "1", 1);
    char *words[] = {"threads", getenv("NUMAPLACE_CASE"), NULL};
    execv("/proc/self/exe", words);
    CHECK(!"cannot start this program again");
}

static void the_first_rank_has_the_first_half(void)
{
    check_share(first_cpu);
    again();
}

static void the_last_rank_has_the_last_half(void)
{
    check_share(second_cpu);
    again();
}

static void one_rank_has_all(void)
{
    struct waiting one;
    CHECK(has_both(pthread_self()));
    check_value("NUMA_PLACE", getenv("NUMAPLACE_CPUS"));
    check_value("NUMA_RANKS", "0");
    waiting_begin(&one, NULL);
    CHECK(only_cpu(pthread_self()) == first_cpu && only_cpu(one.id) == second_cpu);
    waiting_end(&one);
}

static int cpus_of_spawned(void)
{
    pid_t child;
    int status;
    char *words[] = {"threads", "count", NULL};
    CHECK(posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ) == 0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_rank_that_is_bound_has_what_it_is_bound_to(void)
{
    if (!getenv("NUMAPLACE_AGAIN")) {
        /* Its launcher binds it. */
        cpu_set_t mask;
        CPU_ZERO(&mask);
        CPU_SET(first_cpu, &mask);
        setenv("MPI_LOCALRANKID", "1", 1);
        setenv("MPI_LOCALNRANKS", "2", 1);
        CHECK(sched_setaffinity(0, sizeof mask, &mask) == 0 && cpus_of_spawned() == 1);
        again();
    }
    check_share(first_cpu);
}

static void more_ranks_than_cpus_share_them(void)
{
    struct waiting one;
    waiting_begin(&one, NULL);
    CHECK(has_both(pthread_self()) && has_both(one.id));
    waiting_end(&one);
    check_value("NUMA_PLACE", NULL);
    check_value("NUMA_RANKS", NULL);
    check_value("OMP_PROC_BIND", "false");
    check_value("OMP_WAIT_POLICY", "PASSIVE");
}

static void places_of_the_users_own_stay(void)
{
    CHECK(only_cpu(pthread_self()) == first_cpu);
    check_value("OMP_PLACES", "cores");
}

static void nothing_is_divided(void)
{
    CHECK(has_both(pthread_self()));
    check_value("NUMA_PLACE", getenv("NUMAPLACE_CPUS"));
}

#define RANK(rank, count) "NUMA_RANKS=1", "MPI_LOCALRANKID=" rank, "MPI_LOCALNRANKS=" count

const struct test RANKS[] = {
    {"the_first_rank_has_the_first_half", the_first_rank_has_the_first_half,
     {RANK("0", "2"), "OMP_PLACES=as planned"}},
    {"the_last_rank_has_the_last_half", the_last_rank_has_the_last_half, {RANK("1", "2"), "OMP_PLACES=as planned"}},
    {"the_last_rank_of_open_mpi_has_the_last_half", the_last_rank_has_the_last_half,
     {"NUMA_RANKS=1", "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMP_PLACES=as planned"}},
    {"one_rank_has_all", one_rank_has_all, {RANK("0", "1")}},
    {"a_rank_that_is_bound_has_what_it_is_bound_to", a_rank_that_is_bound_has_what_it_is_bound_to,
     {"NUMA_RANKS=1", "OMP_PLACES=as planned"}},
    {"more_ranks_than_cpus_share_them", more_ranks_than_cpus_share_them,
     {RANK("0", "3"), "OMP_PLACES=as planned", "OMP_PROC_BIND=close", "OMP_WAIT_POLICY=ACTIVE"}},
    {"places_of_the_users_own_stay", places_of_the_users_own_stay, {RANK("0", "2"), "OMP_PLACES=cores"}},
    {"nothing_is_divided_unless_asked_for", nothing_is_divided, {"MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=2"}},
    {"nothing_is_divided_without_a_launcher", nothing_is_divided, {"NUMA_RANKS=1"}},
    {"a_rank_that_cannot_be_is_none", nothing_is_divided, {RANK("2", "2")}},
    {"a_rank_that_is_no_number_is_none", nothing_is_divided, {RANK("1x", "2")}},
    {0},
};
