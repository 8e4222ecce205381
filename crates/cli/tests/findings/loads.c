// Loads with one known trouble each, and loads with none: loads MODE SECONDS.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20, HUGE = 2 << 20, PAGE = 4096 };

static double until;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int is_over(void)
{
    return now() >= until;
}

static char *map(size_t bytes, int advice)
{
    char *start = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        exit(3);
    start += (HUGE - (uintptr_t)start % HUGE) % HUGE;
    madvise(start, bytes, advice);
    return start;
}

static void touch(char *start, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PAGE)
        start[at] = 1;
}

static volatile uint64_t sink;

static void *compute(void *unused)
{
    (void)unused;
    uint64_t x = 88172645463325252u;
    while (!is_over()) {
        for (int i = 0; i < 100000; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        sink = x;
    }
    return NULL;
}

static void map_and_unmap(void)
{
    while (!is_over()) {
        char *start = mmap(NULL, 512 * KIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(start, 512 * KIB, MADV_NOHUGEPAGE);
        touch(start, 512 * KIB);
        munmap(start, 512 * KIB);
    }
}

// The same memory is used again.
static void reuse(void)
{
    char *start = map(512 * KIB, MADV_NOHUGEPAGE);
    while (!is_over())
        for (int i = 0; i < 100; i++)
            touch(start, 512 * KIB);
}

static void grow(void)
{
    size_t bytes = (size_t)1536 * MIB, at = 0;
    char *start = map(bytes, MADV_NOHUGEPAGE);
    while (!is_over() && at < bytes) {
        touch(start + at, MIB);
        at += MIB;
    }
    compute(NULL);
}

// The same with huge pages.
static void grow_huge(void)
{
    size_t bytes = (size_t)128 * MIB;
    char *start = map(bytes, MADV_HUGEPAGE);
    touch(start, bytes);
    compute(NULL);
}

static void leak(int stops_after)
{
    double start = now();
    while (!is_over()) {
        if (now() - start < stops_after) {
            char *block = malloc(512 * KIB);
            touch(block, 512 * KIB);
        }
        usleep(10000);
    }
}

static void clear_huge(void)
{
    while (!is_over()) {
        char *start = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(start, 64 * MIB, MADV_HUGEPAGE);
        for (size_t at = HUGE; at < 60 * MIB; at += HUGE)
            start[at] = 1;
        munmap(start, 64 * MIB);
    }
}

static int there[2], back[2];

static void *answer(void *unused)
{
    char byte;
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
        ;
    return unused;
}

static void take_turns(int batch)
{
    pthread_t thread;
    char byte = 0;
    if (pipe(there) != 0 || pipe(back) != 0 || pthread_create(&thread, NULL, answer, NULL) != 0)
        exit(3);
    while (!is_over()) {
        uint64_t x = 1;
        for (int i = 0; i < batch; i++)
            x = x * 6364136223846793005u + 1442695040888963407u;
        sink = x;
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            exit(3);
    }
    close(there[1]);
    pthread_join(thread, NULL);
}

static void start_processes(int pause)
{
    while (!is_over()) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
        usleep(pause);
    }
}

static void threads(int count)
{
    pthread_t thread[64];
    for (int i = 0; i < count; i++)
        pthread_create(&thread[i], NULL, compute, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(thread[i], NULL);
}

static void chase(size_t bytes)
{
    size_t lines = bytes / 64;
    uint32_t *next = (uint32_t *)map(bytes, MADV_HUGEPAGE);
    // Sattolo's shuffle: one cycle through all lines.
    for (size_t i = 0; i < lines; i++)
        next[i * 16] = (uint32_t)i;
    uint64_t x = 88172645463325252u;
    for (size_t i = lines - 1; i > 0; i--) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        size_t j = x % i;
        uint32_t other = next[i * 16];
        next[i * 16] = next[j * 16];
        next[j * 16] = other;
    }
    uint32_t at = 0;
    while (!is_over())
        for (int i = 0; i < 100000; i++)
            at = next[(size_t)at * 16];
    sink = at;
}

static _Alignas(4096) _Atomic uint64_t counters[1024];

static void *count(void *counter)
{
    while (!is_over())
        for (int i = 0; i < 100000; i++)
            atomic_fetch_add((_Atomic uint64_t *)counter, 1);
    return NULL;
}

static void fight(int distance)
{
    pthread_t thread;
    pthread_create(&thread, NULL, count, &counters[distance]);
    count(&counters[0]);
    pthread_join(thread, NULL);
}

static void read_file(const char *path)
{
    static char buffer[MIB];
    // What others read of it before is in their memory, not in that of this program's control group.
    int whole = open(path, O_RDONLY);
    if (whole < 0 || fsync(whole) != 0 || posix_fadvise(whole, 0, 0, POSIX_FADV_DONTNEED) != 0)
        exit(3);
    close(whole);
    while (!is_over()) {
        int file = open(path, O_RDONLY);
        if (file < 0)
            exit(3);
        while (!is_over() && read(file, buffer, sizeof buffer) > 0)
            ;
        close(file);
    }
}

static void exhaust(void)
{
    for (;;) {
        char *block = map(16 * MIB, MADV_NOHUGEPAGE);
        touch(block, 16 * MIB);
    }
}

int main(int count_of_words, char **word)
{
    if (count_of_words < 3)
        return 2;
    until = now() + atof(word[2]);
    const char *mode = word[1];
    int is = 1;
#define MODE(name) if (is && strcmp(mode, name) == 0 && !(is = 0))
    MODE("map-and-unmap") map_and_unmap();
    MODE("reuse") reuse();
    MODE("grow") grow();
    MODE("grow-huge") grow_huge();
    MODE("leak") leak(1000);
    MODE("fill") leak(1);
    MODE("clear-huge") clear_huge();
    MODE("take-turns") take_turns(1);
    MODE("take-long-turns") take_turns(2000000);
    MODE("start-processes") start_processes(0);
    MODE("start-few") start_processes(20000);
    MODE("threads") threads(8);
    MODE("two-threads") threads(2);
    MODE("chase") chase((size_t)768 * MIB);
    MODE("chase-cached") chase(256 * KIB);
    MODE("fight") fight(1);
    MODE("apart") fight(512);
    MODE("compute") compute(NULL);
    MODE("sleep") usleep((unsigned)(atof(word[2]) * 1e6));
    MODE("read-file") read_file(word[3]);
    MODE("exhaust") exhaust();
    return is ? 2 : 0;
}
