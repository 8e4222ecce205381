/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes, settings, memory policy, the interface for programs. */
#define _GNU_SOURCE
#include "check.h"
#include "numaplace.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#ifdef PRELOADED
#pragma weak numaplace_core
#pragma weak numaplace_node
#pragma weak numaplace_version
#pragma weak numaplace_rebind
#endif

static int status_of(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void forked_children_have_the_whole_mask(void)
{
    struct waiting one, other;
    waiting_begin(&one, NULL);
    CHECK(only_cpu(pthread_self()) == first_cpu);
    pid_t child = fork();
    if (child == 0) {
        CHECK(has_both(pthread_self()));
        waiting_begin(&other, NULL);
        CHECK(only_cpu(pthread_self()) == first_cpu && only_cpu(other.id) == second_cpu);
        waiting_end(&other);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(only_cpu(pthread_self()) == first_cpu && only_cpu(one.id) == second_cpu);
    waiting_end(&one);
}

/* The CPUs that a program sees that is spawned here. */
static int cpus_of_spawned(void)
{
    pid_t child;
    char *words[] = {"threads", "count", NULL};
    CHECK(posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ) == 0);
    return status_of(child);
}

static void spawned_programs_have_the_whole_mask(void)
{
    struct waiting one;
    CHECK(cpus_of_spawned() == 2);
    waiting_begin(&one, NULL);
    CHECK(only_cpu(pthread_self()) == first_cpu && cpus_of_spawned() == 2);
    waiting_end(&one);
}

static void a_mask_that_the_user_gave_is_kept(void)
{
    cpu_set_t mask;
    CPU_ZERO(&mask);
    CPU_SET(second_cpu, &mask);
    CHECK(sched_setaffinity(0, sizeof mask, &mask) == 0);
    CHECK(cpus_of_spawned() == 1);
    struct waiting one;
    waiting_begin(&one, NULL);
    CHECK(only_cpu(pthread_self()) == second_cpu && only_cpu(one.id) == first_cpu);
    waiting_end(&one);
    if (getenv("NUMAPLACE_AGAIN")) {
        pid_t child = fork();
        if (child == 0)
            _exit(only_cpu(pthread_self()) == second_cpu ? 0 : 1);
        CHECK(status_of(child) == 0);
        return;
    }
    /* Now it starts with this CPU. */
    setenv("NUMAPLACE_AGAIN", "1", 1);
    char *words[] = {"threads", getenv("NUMAPLACE_CASE"), NULL};
    execv("/proc/self/exe", words);
}

static void processes_share_the_cores_of_a_registry(void)
{
    int file = open("registry", O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && write(file, "NUMAKIT CORES 1\n", 16) == 16);
    /* The path may lead to another file. */
    CHECK(unlink("registry") == 0);
    if (file != 100) {
        /* Once more, with the descriptor that was promised. */
        CHECK(dup2(file, 100) == 100);
        close(file);
        char *words[] = {"threads", getenv("NUMAPLACE_CASE"), NULL};
        execv("/proc/self/exe", words);
        CHECK(!"cannot start this program again");
    }
}

static void cores_of_others_are_not_taken(void)
{
    struct waiting one, other;
    if (fcntl(100, F_GETFD) < 0)
        processes_share_the_cores_of_a_registry();
    waiting_begin(&one, NULL);
    CHECK(only_cpu(one.id) == second_cpu && cpus_of_spawned() == 2);
    pid_t child = fork();
    if (child == 0) {
        waiting_begin(&other, NULL);
        CHECK(has_both(pthread_self()) && has_both(other.id));
        waiting_end(&other);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    waiting_end(&one);
    child = fork();
    if (child == 0) {
        waiting_begin(&other, NULL);
        CHECK(only_cpu(pthread_self()) == second_cpu && has_both(other.id));
        waiting_end(&other);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    close(100);
    waiting_begin(&other, NULL);
    CHECK(only_cpu(other.id) == second_cpu);
    waiting_end(&other);
}

static int policy(void)
{
    int mode = -1;
    CHECK(syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL) == 0 || errno == ENOSYS);
    return mode;
}

static void *its_policy(void *argument)
{
    *(int *)argument = policy();
    return NULL;
}

static void the_policy_stays(void)
{
    unsigned long node = 1;
    int before, seen = -2;
    pthread_t id;
    for (int time = 0; time < 2; time++) {
        before = policy();
        CHECK(pthread_create(&id, NULL, its_policy, &seen) == 0 && pthread_join(id, NULL) == 0);
        CHECK(seen == before && policy() == before);
        if (syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &node, 8UL))
            printf("skipped in part (privileges): another policy than the default: %s\n", strerror(errno));
    }
}

static void the_policy_of_the_start_is_replaced(void)
{
    unsigned long node = 1;
    if (!getenv("NUMAPLACE_AGAIN")) {
        if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, &node, 8UL)) {
            printf("skipped in part (privileges): the policy of the start: %s\n", strerror(errno));
            return;
        }
        setenv("NUMAPLACE_AGAIN", "1", 1);
        char *words[] = {"threads", getenv("NUMAPLACE_CASE"), NULL};
        execv("/proc/self/exe", words);
    }
    CHECK(policy() == MPOL_INTERLEAVE);
}

/* Threads are as without the library, whatever the settings are. */
static void threads_are_left_alone(void)
{
    struct waiting one;
    waiting_begin(&one, NULL);
    CHECK(has_both(pthread_self()) && has_both(one.id));
    waiting_end(&one);
    CHECK(numaplace_rebind() == ENOTSUP);
}

static void a_cpu_that_is_not_there_is_left_out(void)
{
    struct waiting one;
    waiting_begin(&one, NULL);
    CHECK(has_both(pthread_self()) && has_both(one.id));
    waiting_end(&one);
}

static void children_are_not_placed_on_request(void)
{
    CHECK(!getenv("NUMA_PLACE") && !getenv("NUMA_NODES") && !getenv("NUMA_INHERIT"));
    const char *preload = getenv("LD_PRELOAD");
    CHECK(!preload || !strstr(preload, "libnumaplace"));
    struct waiting one;
    waiting_begin(&one, NULL);
    CHECK(only_cpu(one.id) == second_cpu);
    waiting_end(&one);
}

static void the_main_thread_stays_free_on_request(void)
{
    struct waiting one;
    waiting_begin(&one, NULL);
    CHECK(has_both(pthread_self()) && only_cpu(one.id) == first_cpu);
    waiting_end(&one);
}

/* As on nodes without memory. */
static void nodes_that_are_not_there_are_left_out(void)
{
    struct waiting one;
    waiting_begin(&one, NULL);
    CHECK(only_cpu(pthread_self()) == first_cpu && only_cpu(one.id) == second_cpu && policy() == MPOL_DEFAULT);
    waiting_end(&one);
}

static void *ask(void *argument)
{
    (void)argument;
    CHECK(numaplace_core() == second_cpu && numaplace_node() == 0);
    cpu_set_t both = mask_of(pthread_self());
    CPU_SET(first_cpu, &both);
    CHECK(sched_setaffinity(0, sizeof both, &both) == 0 && numaplace_core() == -1);
    CHECK(numaplace_rebind() == 0 && numaplace_core() == second_cpu);
    return NULL;
}

static void programs_can_ask(void)
{
    pthread_t id;
    struct waiting one;
    CHECK(strcmp(numaplace_version(), NUMAPLACE_VERSION) == 0);
    CHECK(numaplace_core() == -1);
    CHECK(pthread_create(&id, NULL, ask, NULL) == 0 && pthread_join(id, NULL) == 0);
    CHECK(numaplace_core() == first_cpu);
    waiting_begin(&one, NULL);
    pid_t child = fork();
    if (child == 0) {
        CHECK(numaplace_core() == -1 && numaplace_rebind() == 0 && numaplace_core() == first_cpu);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
    waiting_end(&one);
}

static void helpers_of_mpi_have_the_whole_mask(void)
{
    const char *path = getenv("NUMAPLACE_HELPERS");
    CHECK(path);
    void *library = dlopen(path, RTLD_NOW);
    CHECK(library);
    void (*start)(pthread_t *) = NULL, (*stop)(pthread_t) = NULL;
    *(void **)&start = dlsym(library, "helpers_start");
    *(void **)&stop = dlsym(library, "helpers_stop");
    CHECK(start && stop);
    pthread_t helper;
    struct waiting one;
    start(&helper);
    CHECK(has_both(helper) && has_both(pthread_self()));
    waiting_begin(&one, NULL);
    CHECK(only_cpu(pthread_self()) == first_cpu && only_cpu(one.id) == second_cpu);
    stop(helper);
    start(&helper);
    CHECK(has_both(helper));
    stop(helper);
    waiting_end(&one);
}

const struct test AROUND[] = {
    {"forked_children_have_the_whole_mask", forked_children_have_the_whole_mask, {0}},
    {"spawned_programs_have_the_whole_mask", spawned_programs_have_the_whole_mask, {0}},
    {"a_mask_that_the_user_gave_is_kept", a_mask_that_the_user_gave_is_kept, {0}},
    {"cores_of_others_are_not_taken", cores_of_others_are_not_taken, {"NUMA_HOLD=100"}},
    {"the_policy_stays", the_policy_stays, {0}},
    {"the_policy_of_the_start_is_replaced", the_policy_of_the_start_is_replaced, {"NUMA_MEMORY=interleave:0"}},
    {"threads_are_left_alone_if_the_place_is_wrong", threads_are_left_alone, {"NUMA_PLACE=0-"}},
    {"threads_are_left_alone_if_the_mask_is_wrong", threads_are_left_alone, {"NUMA_MASK=8192"}},
    {"threads_are_left_alone_if_nodes_are_wrong", threads_are_left_alone, {"NUMA_NODES=0-1"}},
    {"threads_are_left_alone_if_memory_is_wrong", threads_are_left_alone, {"NUMA_MEMORY=bind:"}},
    {"a_cpu_that_is_not_there_is_left_out", a_cpu_that_is_not_there_is_left_out, {"NUMA_PLACE=8190,8191"}},
    {"children_are_not_placed_on_request", children_are_not_placed_on_request, {"NUMA_INHERIT=0"}},
    {"the_main_thread_stays_free_on_request", the_main_thread_stays_free_on_request, {"NUMA_MAIN=0"}},
    {"nodes_that_are_not_there_are_left_out", nodes_that_are_not_there_are_left_out, {"NUMA_NODES=5:0-9"}},
    {"programs_can_ask", programs_can_ask, {0}},
    {"helpers_of_mpi_have_the_whole_mask", helpers_of_mpi_have_the_whole_mask, {0}},
    {0},
};
