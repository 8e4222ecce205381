/* What the tests of roads sample. Each mode writes lines to standard output. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;
static volatile int stop;
static volatile sig_atomic_t handled;

static uint64_t cpu_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* All time passes here: a section of its own tells where it begins and ends. */
__attribute__((noinline, section("spinning"))) static uint64_t spin_once(uint64_t value)
{
    for (int i = 0; i < 200000; i++)
        value = value * 6364136223846793005u + 1442695040888963407u;
    return value;
}

extern char __start_spinning[], __stop_spinning[];

static void spin(uint64_t ms)
{
    uint64_t end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000u;
    while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        sink = spin_once(sink);
}

static void *spin_thread(void *ms)
{
    spin((uint64_t)(uintptr_t)ms);
    return NULL;
}

/* A chain of dependent loads through an array in an order that no prefetcher guesses. */
static void chain(size_t mib, uint64_t ms)
{
    size_t count = (mib << 20) / 64;
    char *array = mmap(NULL, count * 64, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* An odd multiplier visits every line of an array of a power of two. */
    for (size_t i = 0, at = 0; i < count; i++) {
        size_t next = (at * 5 + 12345) & (count - 1);
        *(char **)(array + at * 64) = array + next * 64;
        at = next;
    }
    printf("array %p %p\n", (void *)array, (void *)(array + count * 64));
    fflush(stdout);
    uint64_t end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000u;
    char *at = array;
    while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 10000; i++)
            at = *(char *volatile *)at;
    sink = (uint64_t)at;
}

static void *spin_until_stopped(void *nothing)
{
    while (!stop)
        sink = spin_once(sink);
    return nothing;
}

static void on_signal(int number)
{
    (void)number;
    handled++;
}

/* Short sleeps beside a spinning thread: how many system calls were interrupted? */
static void sleeps(int count)
{
    pthread_t thread;
    int epoll = epoll_create1(0), interrupted = 0;
    struct epoll_event event;
    pthread_create(&thread, NULL, spin_until_stopped, NULL);
    for (int i = 0; i < count; i++) {
        struct timespec short_time = {0, 100000};
        struct pollfd none = {-1, 0, 0};
        sink = spin_once(sink);
        interrupted += epoll_wait(epoll, &event, 1, 1) < 0 && errno == EINTR;
        interrupted += nanosleep(&short_time, NULL) < 0 && errno == EINTR;
        interrupted += poll(&none, 1, 1) < 0 && errno == EINTR;
    }
    stop = 1;
    pthread_join(thread, NULL);
    printf("interrupted %d\n", interrupted);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "spin";
    int count = argc > 2 ? atoi(argv[2]) : 1;
    uint64_t ms = argc > 3 ? (uint64_t)atoi(argv[3]) : 100;
    printf("function %p %p\n", (void *)__start_spinning, (void *)__stop_spinning);
    fflush(stdout);
    if (!strcmp(mode, "spin")) {
        spin(ms);
    } else if (!strcmp(mode, "threads")) {
        pthread_t threads[64];
        for (int i = 0; i < count && i < 64; i++)
            pthread_create(&threads[i], NULL, spin_thread, (void *)(uintptr_t)ms);
        for (int i = 0; i < count && i < 64; i++)
            pthread_join(threads[i], NULL);
    } else if (!strcmp(mode, "fork")) {
        for (int i = 0; i < count; i++)
            if (fork() == 0) {
                spin(ms);
                _exit(0);
            }
        while (wait(NULL) > 0 || errno == EINTR)
            ;
    } else if (!strcmp(mode, "exec")) {
        spin(ms);
        execl("/proc/self/exe", argv[0], "spin", "1", argv[3], (char *)NULL);
    } else if (!strcmp(mode, "sleeps")) {
        sleeps(count);
    } else if (!strcmp(mode, "signals")) {
        signal(SIGUSR1, on_signal);
        for (int i = 0; i < count; i++) {
            sink = spin_once(sink);
            raise(SIGUSR1);
        }
        printf("handled %d\n", (int)handled);
    } else if (!strcmp(mode, "stopped")) {
        spin(ms);
        raise(SIGSTOP);
        spin(ms);
    } else if (!strcmp(mode, "chain")) {
        chain((size_t)count, ms);
    } else if (!strcmp(mode, "touch")) {
        size_t length = (size_t)count << 20;
        struct rusage usage;
        memset(malloc(length), 1, length);
        spin(ms);
        getrusage(RUSAGE_SELF, &usage);
        printf("faults %ld\n", usage.ru_minflt);
    }
    printf("ended %llu\n", (unsigned long long)cpu_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000000);
    return 42;
}
