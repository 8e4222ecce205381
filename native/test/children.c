/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes and threads that a bound thread starts, in all ways of the C library, get the whole mask. */
#define _GNU_SOURCE
#include "check.h"
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netdb.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

extern char **environ;

/* A program that loads no library. */
static char *counter(void)
{
    char *path = getenv("NUMAPLACE_COUNT");
    CHECK(path);
    return path;
}

static int status_of(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void by_execv(char *const words[]) { execv(words[0], words); }
static void by_execve(char *const words[]) { execve(words[0], words, environ); }
static void by_execvp(char *const words[]) { execvp(words[0], words); }
static void by_execvpe(char *const words[]) { execvpe(words[0], words, environ); }
static void by_execl(char *const words[]) { execl(words[0], words[0], "one", "two", NULL); }
static void by_execlp(char *const words[]) { execlp(words[0], words[0], NULL); }
static void by_execle(char *const words[]) { execle(words[0], words[0], "one", NULL, environ); }
static void by_fexecve(char *const words[]) { fexecve(open(words[0], O_RDONLY), words, environ); }
static void by_execveat(char *const words[]) { execveat(AT_FDCWD, words[0], words, environ, 0); }

static void (*const EXECS[])(char *const words[]) = {
    by_execv, by_execve, by_execvp, by_execvpe, by_execl, by_execlp, by_execle, by_fexecve, by_execveat,
};

static int exec_in_clone(void *words)
{
    execv(*(char **)words, words);
    return 98;
}

static int look_in_clone(void *unused)
{
    cpu_set_t mask;
    (void)unused;
    return sched_getaffinity(0, sizeof mask, &mask) ? 99 : CPU_COUNT(&mask);
}

static void programs_by_fork_and_exec(void)
{
    struct waiting one;
    char *words[] = {counter(), NULL};
    waiting_begin(&one, NULL);
    CHECK(only_cpu(pthread_self()) == first_cpu);
    for (size_t way = 0; way < sizeof EXECS / sizeof *EXECS; way++) {
        pid_t child = fork();
        if (child == 0) {
            EXECS[way](words);
            _exit(97);
        }
        CHECK(status_of(child) == 2);
        child = vfork();
        if (child == 0) {
            EXECS[way](words);
            _exit(96);
        }
        CHECK(status_of(child) == 2);
        CHECK(only_cpu(pthread_self()) == first_cpu);
    }
    waiting_end(&one);
}

static void programs_by_clone(void)
{
    static char stack[64 << 10] __attribute__((aligned(64)));
    struct waiting one;
    char *words[] = {counter(), NULL};
    waiting_begin(&one, NULL);
    CHECK(status_of(clone(exec_in_clone, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, words)) == 2);
    CHECK(status_of(clone(look_in_clone, stack + sizeof stack, SIGCHLD, NULL)) == 2);
    CHECK(only_cpu(pthread_self()) == first_cpu);
    waiting_end(&one);
}

#if __GLIBC_PREREQ(2, 34)
static void children_by_the_fork_that_calls_nobody(void)
{
    struct waiting one, other;
    waiting_begin(&one, NULL);
    pid_t child = _Fork();
    if (child == 0) {
        bool both = has_both(pthread_self());
        waiting_begin(&other, NULL);
        _exit(both && only_cpu(pthread_self()) >= 0 && only_cpu(other.id) >= 0 ? 0 : 1);
    }
    CHECK(status_of(child) == 0 && only_cpu(pthread_self()) == first_cpu);
    waiting_end(&one);
}
#endif

static void programs_by_the_functions_that_do_both(void)
{
    struct waiting one;
    pid_t child;
    wordexp_t found;
    char *words[] = {counter(), NULL}, line[256];
    waiting_begin(&one, NULL);
    CHECK(posix_spawn(&child, words[0], NULL, NULL, words, environ) == 0 && status_of(child) == 2);
    CHECK(posix_spawnp(&child, words[0], NULL, NULL, words, environ) == 0 && status_of(child) == 2);
    int status = system(words[0]);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    FILE *pipe = popen(words[0], "r");
    CHECK(pipe);
    status = pclose(pipe);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    snprintf(line, sizeof line, "$(%s || echo $?)", words[0]);
    CHECK(wordexp(line, &found, 0) == 0 && found.we_wordc == 1 && strcmp(found.we_wordv[0], "2") == 0);
    wordfree(&found);
    CHECK(only_cpu(pthread_self()) == first_cpu);
    waiting_end(&one);
}

/* Also from a thread that is not the main one. */
static void *spawn_from_here(void *argument)
{
    pid_t child;
    char *words[] = {counter(), NULL};
    CHECK(only_cpu(pthread_self()) == second_cpu);
    CHECK(posix_spawn(&child, words[0], NULL, NULL, words, environ) == 0 && status_of(child) == 2);
    child = fork();
    if (child == 0)
        _exit(has_both(pthread_self()) ? 0 : 1);
    CHECK(status_of(child) == 0 && only_cpu(pthread_self()) == second_cpu);
    return argument;
}

static void programs_of_other_threads(void)
{
    pthread_t id;
    CHECK(pthread_create(&id, NULL, spawn_from_here, NULL) == 0 && pthread_join(id, NULL) == 0);
}

static void a_program_that_takes_the_place_of_this_one(void)
{
    if (getenv("NUMAPLACE_AGAIN")) {
        CHECK(has_both(pthread_self()));
        return;
    }
    struct waiting one;
    waiting_begin(&one, NULL);
    CHECK(only_cpu(pthread_self()) == first_cpu);
    char *nothing[] = {"/nowhere", NULL}, *words[] = {"threads", getenv("NUMAPLACE_CASE"), NULL};
    CHECK(execv(nothing[0], nothing) == -1 && errno == ENOENT && only_cpu(pthread_self()) == first_cpu);
    setenv("NUMAPLACE_AGAIN", "1", 1);
    execv("/proc/self/exe", words);
    CHECK(!"cannot start this program again");
}

/* A mask that the program sets itself is inherited, as without the library. */
static void a_mask_of_its_own_is_inherited(void)
{
    struct waiting one;
    pid_t child;
    cpu_set_t mask;
    char *words[] = {counter(), NULL};
    waiting_begin(&one, NULL);
    CPU_ZERO(&mask);
    CPU_SET(second_cpu, &mask);
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof mask, &mask) == 0);
    CHECK(posix_spawn(&child, words[0], NULL, NULL, words, environ) == 0 && status_of(child) == 1);
    CHECK(sched_setaffinity(0, sizeof mask, &mask) == 0);
    child = fork();
    if (child == 0)
        execv(words[0], words);
    CHECK(status_of(child) == 1);
    CHECK(sched_setaffinity(0, 0, &mask) == -1 && errno == EINVAL);
    /* Setting the mask that it had, as if the program had not bound it. */
    CPU_ZERO(&mask);
    CPU_SET(first_cpu, &mask);
    CHECK(sched_setaffinity(0, sizeof mask, &mask) == 0);
    CHECK(posix_spawn(&child, words[0], NULL, NULL, words, environ) == 0 && status_of(child) == 2);
    waiting_end(&one);
}

static sem_t looked;
static bool saw_both;

static void look(void)
{
    saw_both = has_both(pthread_self());
    sem_post(&looked);
}

static void look_at_value(union sigval unused)
{
    (void)unused;
    look();
}

static void expect_both(void)
{
    while (sem_wait(&looked))
        continue;
    CHECK(saw_both);
    saw_both = false;
}

static int look_as_c11(void *argument)
{
    look();
    return *(int *)argument;
}

static void threads_that_others_create(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = look_at_value};
    struct waiting one;
    sem_init(&looked, 0, 0);
    waiting_begin(&one, NULL);
    timer_t timer;
    struct itimerspec soon = {.it_value = {.tv_nsec = 1000000}};
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &soon, NULL) == 0);
    expect_both();
    timer_delete(timer);
    char byte;
    struct aiocb request = {.aio_fildes = open("/proc/self/exe", O_RDONLY), .aio_buf = &byte, .aio_nbytes = 1};
    request.aio_sigevent = event;
    CHECK(aio_read(&request) == 0);
    expect_both();
    struct gaicb address = {.ar_name = "127.0.0.1"}, *list[] = {&address};
    CHECK(getaddrinfo_a(GAI_NOWAIT, list, 1, &event) == 0);
    expect_both();
    CHECK(only_cpu(pthread_self()) == first_cpu && only_cpu(one.id) == second_cpu);
    waiting_end(&one);
}

static void threads_of_c11_are_placed(void)
{
    thrd_t thread;
    struct waiting one;
    int value = -7, result = 0;
    sem_init(&looked, 0, 0);
    CHECK(thrd_create(&thread, look_as_c11, &value) == thrd_success);
    CHECK(thrd_join(thread, &result) == thrd_success && result == -7);
    while (sem_wait(&looked))
        continue;
    CHECK(!saw_both && only_cpu(pthread_self()) == first_cpu);
    waiting_begin(&one, NULL);
    CHECK(only_cpu(one.id) == second_cpu && thrd_create(&thread, look_as_c11, &value) == thrd_success);
    CHECK(thrd_join(thread, &result) == thrd_success && result == -7);
    expect_both();
    waiting_end(&one);
}

static void threads_of_c11_are_left_alone(void)
{
    thrd_t thread;
    int value = -7, result = 0;
    sem_init(&looked, 0, 0);
    CHECK(thrd_create(&thread, look_as_c11, &value) == thrd_success);
    CHECK(thrd_join(thread, &result) == thrd_success && result == -7);
    expect_both();
}

/* From now on the kernel answers these calls with an errno, as a container's filter does. */
static void refuse(int error)
{
    const int calls[] = {SYS_sched_setaffinity, SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy, SYS_move_pages};
    enum { CALLS = sizeof calls / sizeof *calls };
    struct sock_filter filter[CALLS + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < CALLS; i++)
        filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], CALLS - i, 0);
    filter[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    struct sock_fprog program = {CALLS + 3, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void *nothing(void *argument)
{
    return argument;
}

static void create_refused(int error, bool is_bound)
{
    struct waiting one;
    pthread_t id;
    thrd_t thread;
    int value = 3, result;
    FILE *lines = tmpfile();
    int stderr_was = dup(STDERR_FILENO);
    CHECK(lines && stderr_was >= 0);
    if (is_bound)
        waiting_begin(&one, NULL);
    refuse(error);
    CHECK(dup2(fileno(lines), STDERR_FILENO) >= 0);
    for (int time = 0; time < 20; time++)
        CHECK(pthread_create(&id, NULL, nothing, NULL) == 0 && pthread_join(id, NULL) == 0);
    CHECK(thrd_create(&thread, look_as_c11, &value) == 0 && thrd_join(thread, &result) == 0 && result == 3);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK(status_of(child) == 0);
    CHECK(dup2(stderr_was, STDERR_FILENO) >= 0);
    rewind(lines);
    int count = 0;
    for (char line[512]; fgets(line, sizeof line, lines); count++)
        CHECK(strncmp(line, "numaplace: cannot bind threads: ", 32) == 0);
    CHECK(count == 1);
    if (is_bound)
        waiting_end(&one);
}

static void threads_where_calls_are_not_permitted(void) { create_refused(EPERM, false); }
static void threads_where_calls_do_not_exist(void) { create_refused(ENOSYS, false); }
static void threads_where_calls_are_refused_later(void) { create_refused(EPERM, true); }

const struct test CHILDREN[] = {
    {"programs_by_fork_and_exec", programs_by_fork_and_exec, {0}},
    {"programs_by_clone", programs_by_clone, {0}},
#if __GLIBC_PREREQ(2, 34)
    {"children_by_the_fork_that_calls_nobody", children_by_the_fork_that_calls_nobody, {0}},
#endif
    {"programs_by_the_functions_that_do_both", programs_by_the_functions_that_do_both, {0}},
    {"programs_of_other_threads", programs_of_other_threads, {0}},
    {"a_program_that_takes_the_place_of_this_one", a_program_that_takes_the_place_of_this_one, {0}},
    {"a_mask_of_its_own_is_inherited", a_mask_of_its_own_is_inherited, {0}},
    {"threads_that_others_create", threads_that_others_create, {0}},
    {"threads_of_c11_are_placed", threads_of_c11_are_placed, {0}},
    {"threads_of_c11_are_left_alone_if_the_place_is_wrong", threads_of_c11_are_left_alone, {"NUMA_PLACE=0-"}},
    {"threads_where_calls_are_not_permitted", threads_where_calls_are_not_permitted, {0}},
    {"threads_where_calls_do_not_exist", threads_where_calls_do_not_exist, {0}},
    {"threads_where_calls_are_refused_later", threads_where_calls_are_refused_later, {0}},
    {0},
};
