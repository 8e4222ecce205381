/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* torture CASE     does what programs do with signals, threads and processes. What it prints and its status are the same
 * with the library and without; it prints "ok CASE" if everything was as without the library. `torture list` lists the
 * cases. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                  \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

extern char **environ;

/* How often something is repeated: `usually` as every submission needs it, `thoroughly` with `cargo xtask test --thorough`. */
static int rounds(int usually, int thoroughly)
{
    return getenv("NUMAKIT_THOROUGH") ? thoroughly : usually;
}

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* CPU time in seconds of one thread that has a sample on a busy machine too: the kernel looks at timers on its ticks. */
#define SAMPLED 0.3

/* Uses CPU time, in the program and not only in the kernel. */
static void burn(double seconds)
{
    double end = cpu_seconds() + seconds;
    volatile unsigned long sum = 0;
    while (cpu_seconds() < end)
        for (int i = 0; i < 10000; i++)
            sum += (unsigned long)i;
}

static int status_of(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        CHECK(errno == EINTR);
    return status;
}

static volatile sig_atomic_t caught, caught_code;

static void catch(int number)
{
    caught = number;
}

static void catch_info(int number, siginfo_t *info, void *context)
{
    (void)context;
    caught = number;
    caught_code = info->si_code;
}

/* The timers' signal is the program's too. */
static void its_own_signal(void)
{
    int number = SIGRTMIN;
    struct sigaction action = {.sa_sigaction = catch_info, .sa_flags = SA_SIGINFO}, before;
    sigaddset(&action.sa_mask, SIGUSR1);
    CHECK(sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL && before.sa_flags == 0);
    CHECK(sigaction(number, &action, &before) == 0 && before.sa_handler == SIG_DFL);
    for (int i = 0; i < 50; i++) {
        caught = 0;
        burn(0.005);
        CHECK(caught == 0);
        CHECK(raise(number) == 0 && caught == number && caught_code == SI_TKILL);
        caught = 0;
        union sigval value = {.sival_int = i};
        CHECK(sigqueue(getpid(), number, value) == 0 && caught == number && caught_code == SI_QUEUE);
    }
    CHECK(sigaction(number, NULL, &before) == 0 && before.sa_sigaction == catch_info);
    CHECK(before.sa_flags & SA_SIGINFO && sigismember(&before.sa_mask, SIGUSR1) == 1);
    CHECK(sigismember(&before.sa_mask, SIGUSR2) == 0);
    CHECK(signal(number, SIG_IGN) != SIG_ERR);
    caught = 0;
    CHECK(raise(number) == 0 && caught == 0);
    burn(0.05);
    CHECK(signal(number, catch) == SIG_IGN && signal(number, catch) == catch);
    CHECK(raise(number) == 0 && caught == number);
    burn(0.05);
}

static void its_own_timer(void)
{
    int number = SIGRTMIN;
    struct sigaction action = {.sa_sigaction = catch_info, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
    struct itimerspec times = {.it_value = {0, 20000000}};
    timer_t timer;
    CHECK(sigaction(number, &action, NULL) == 0);
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &times, NULL) == 0);
    caught = 0;
    while (!caught)
        burn(0.01);
    CHECK(caught_code == SI_TIMER);
    burn(SAMPLED);
}

/* Without an action it ends the process. */
static void killed_by_it(void)
{
    pid_t child = fork();
    if (child == 0) {
        burn(0.02);
        raise(SIGRTMIN);
        _exit(0);
    }
    int status = status_of(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGRTMIN);
    child = fork();
    if (child == 0)
        for (;;)
            burn(1);
    usleep(20000);
    CHECK(kill(child, SIGRTMIN) == 0);
    status = status_of(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGRTMIN);
}

static void every_signal(void)
{
    struct sigaction before;
    for (int number = 1; number < NSIG; number++) {
        if (sigaction(number, NULL, &before))
            continue;
        CHECK(before.sa_handler == SIG_DFL || number == SIGPIPE || number < 32);
        signal(number, SIG_DFL);
    }
    burn(0.1);
}

static atomic_bool over;

static void *burn_until_over(void *unused)
{
    while (!over)
        burn(0.01);
    return unused;
}

/* A thread that waits for all signals, as servers have it. */
static void waiting_for_all(void)
{
    sigset_t all, before;
    pthread_t other;
    sigfillset(&all);
    CHECK(pthread_create(&other, NULL, burn_until_over, NULL) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &all, &before) == 0 && sigismember(&before, SIGRTMIN) == 0);
    burn(0.05);
    siginfo_t info;
    struct timespec time = {0, 30000000};
    CHECK(sigtimedwait(&all, &info, &time) < 0 && errno == EAGAIN);
    sigset_t pending;
    burn(0.05);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGRTMIN) == 0);
    CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
    int number = 0;
    CHECK(sigwait(&all, &number) == 0 && number == SIGUSR1);
    burn(0.05);
    CHECK(pthread_kill(pthread_self(), SIGRTMIN) == 0);
    CHECK(sigwaitinfo(&all, &info) == SIGRTMIN);
    over = true;
    CHECK(pthread_join(other, NULL) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

static void a_file_of_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    int file = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
    CHECK(file >= 0);
    burn(0.1);
    struct signalfd_siginfo info;
    CHECK(read(file, &info, sizeof info) < 0 && errno == EAGAIN);
    CHECK(raise(SIGRTMIN) == 0 && read(file, &info, sizeof info) == sizeof info);
    CHECK(info.ssi_signo == (uint32_t)SIGRTMIN);
}

static void *burn_a_little(void *bytes)
{
    stack_t own = {.ss_sp = bytes, .ss_size = 65536};
    if (bytes)
        CHECK(sigaltstack(&own, NULL) == 0);
    burn(0.02);
    if (bytes) {
        own.ss_flags = SS_DISABLE;
        CHECK(sigaltstack(&own, NULL) == 0);
    }
    return NULL;
}

static int burn_c11(void *unused)
{
    (void)unused;
    burn(0.02);
    return -7;
}

static void threads(void)
{
    pthread_t ids[8];
    thrd_t c11;
    int result = 0;
    for (int i = 0; i < 8; i++)
        CHECK(pthread_create(&ids[i], NULL, burn_a_little, i % 2 ? malloc(65536) : NULL) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(pthread_join(ids[i], NULL) == 0);
    CHECK(thrd_create(&c11, burn_c11, NULL) == thrd_success);
    CHECK(thrd_join(c11, &result) == thrd_success && result == -7);
}

static pthread_barrier_t barrier;

static void *nothing(void *argument)
{
    return argument;
}

static void short_threads(void)
{
    for (int i = 0, count = rounds(1500, 5000); i < count; i++) {
        pthread_t id;
        void *result;
        CHECK(pthread_create(&id, NULL, nothing, &barrier) == 0);
        if (i % 3 == 0) {
            CHECK(pthread_detach(id) == 0);
            continue;
        }
        CHECK(pthread_join(id, &result) == 0 && result == &barrier);
    }
    /* These threads are too short for a sample. */
    burn(SAMPLED);
}

static void *wait_at_barrier(void *argument)
{
    pthread_barrier_wait(&barrier);
    burn(0.0002);
    pthread_barrier_wait(&barrier);
    return argument;
}

static void many_threads(void)
{
    static pthread_t ids[5000];
    pthread_attr_t attributes;
    int count = rounds(500, 5000);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&ids[i], &attributes, wait_at_barrier, NULL) == 0);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(ids[i], NULL) == 0);
    /* Each of them is too short for a sample where other programs keep it from running. */
    burn(SAMPLED);
}

static int child_of_clone(void *unused)
{
    (void)unused;
    burn(0.01);
    return 9;
}

static void share_memory(void)
{
    pid_t child = vfork();
    if (child == 0) {
        signal(SIGRTMIN, SIG_IGN);
        _exit(3);
    }
    int status = status_of(child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void processes(void)
{
    for (int i = 0, count = rounds(6, 30); i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            burn(0.01);
            if (i % 3 == 0)
                exit(i);
            if (i % 3 == 1)
                quick_exit(i);
            _exit(i);
        }
        burn(0.003);
        int status = status_of(child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i);
        share_memory();
    }
    struct sigaction before;
    CHECK(sigaction(SIGRTMIN, NULL, &before) == 0 && before.sa_handler == SIG_DFL);
    char *stack = malloc(1 << 16);
    pid_t child = clone(child_of_clone, stack + (1 << 16), SIGCHLD, NULL);
    CHECK(child > 0 && WEXITSTATUS(status_of(child)) == 9);
    char *words[] = {"true", NULL};
    for (int i = 0, count = rounds(4, 20); i < count; i++) {
        CHECK(posix_spawnp(&child, "true", NULL, NULL, words, environ) == 0);
        CHECK(status_of(child) == 0);
    }
    CHECK(system("exit 5") == 5 << 8);
}

/* While other threads are sampled. */
static void exec_of_many(void)
{
    for (int i = 0, count = rounds(5, 40); i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t id;
            for (int thread = 0; thread < 3; thread++)
                CHECK(pthread_create(&id, NULL, burn_until_over, NULL) == 0);
            burn(0.011);
            execlp("true", "true", NULL);
            _exit(1);
        }
        int status = status_of(child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void closed_descriptors(void)
{
    for (int file = 3; file < 1024; file++)
        close(file);
    int first = open("/dev/null", O_RDONLY);
    CHECK(first == 3);
    burn(0.1);
    pid_t child = fork();
    if (child == 0) {
        burn(0.02);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
}

static void other_user(void)
{
    if (geteuid() == 0) {
        CHECK(setgid(65534) == 0 && setuid(65534) == 0);
        burn(0.1);
    }
    CHECK(WEXITSTATUS(system("true")) == 0);
}

static void other_root(void)
{
    if (geteuid() == 0)
        CHECK(unshare(CLONE_NEWNS) == 0 && chroot("/proc") == 0 && chdir("/") == 0);
    burn(0.05);
    pid_t child = fork();
    if (child == 0) {
        burn(0.02);
        _exit(0);
    }
    CHECK(status_of(child) == 0);
}

/* Calls of the handler end the process. */
static void strict_filter(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrusage, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_create, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
    burn(0.3);
    for (int way = 0; way < 2; way++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
            CHECK(way ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0
                      : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
            burn(0.05);
            pthread_t id;
            CHECK(pthread_create(&id, NULL, nothing, NULL) == 0 && pthread_join(id, NULL) == 0);
            pid_t grandchild = fork();
            if (grandchild == 0)
                execlp("true", "true", NULL);
            CHECK(status_of(grandchild) == 0);
            _exit(0);
        }
        CHECK(status_of(child) == 0);
    }
}

/* Functions with tiny stacks below memory that is not there. */
static ucontext_t outside, inside;

static void coroutine(void)
{
    for (int i = 0; i < 5; i++) {
        burn(0.06);
        swapcontext(&inside, &outside);
    }
}

static void coroutines(void)
{
    enum { PAGE = 4096, PAGES = 5 };
    char *memory = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && mprotect(memory + PAGE, PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
    getcontext(&inside);
    inside.uc_stack.ss_sp = memory + PAGE;
    inside.uc_stack.ss_size = PAGES * PAGE;
    makecontext(&inside, coroutine, 0);
    for (int i = 0; i < 5; i++)
        swapcontext(&outside, &inside);
}

static void errno_is_kept(void)
{
    double end = cpu_seconds() + 0.3;
    errno = 4711;
    while (cpu_seconds() < end)
        CHECK(errno == 4711);
}

/* While the program ends, its handlers and other threads run. */
static void last_words(void)
{
    burn(0.01);
}

static void end_with_threads(void)
{
    for (int i = 0, count = rounds(4, 20); i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            pthread_t id;
            atexit(last_words);
            for (int thread = 0; thread < 4; thread++)
                CHECK(pthread_create(&id, NULL, burn_until_over, NULL) == 0);
            burn(0.005);
            over = i % 2;
            if (over)
                pthread_exit(NULL);
            exit(0);
        }
        CHECK(status_of(child) == 0);
    }
}

static const struct test {
    const char *name;
    void (*run)(void);
} TESTS[] = {
    {"its_own_signal", its_own_signal},
    {"its_own_timer", its_own_timer},
    {"killed_by_it", killed_by_it},
    {"every_signal", every_signal},
    {"waiting_for_all", waiting_for_all},
    {"a_file_of_signals", a_file_of_signals},
    {"threads", threads},
    {"short_threads", short_threads},
    {"many_threads", many_threads},
    {"processes", processes},
    {"exec_of_many", exec_of_many},
    {"closed_descriptors", closed_descriptors},
    {"other_user", other_user},
    {"other_root", other_root},
    {"strict_filter", strict_filter},
    {"coroutines", coroutines},
    {"errno_is_kept", errno_is_kept},
    {"end_with_threads", end_with_threads},
};

int main(int count, char **words)
{
    if (count != 2)
        return 2;
    bool lists = strcmp(words[1], "list") == 0;
    for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++) {
        if (lists)
            puts(TESTS[i].name);
        if (strcmp(words[1], TESTS[i].name) == 0) {
            TESTS[i].run();
            printf("ok %s\n", words[1]);
            return 0;
        }
    }
    /* An unknown case is a mistake of who names it. */
    return lists ? 0 : 2;
}
