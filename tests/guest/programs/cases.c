/* cases CASE SECONDS [FILE]
 *
 * A thread on each CPU that the program may use works until the time is over. Where the memory is, numactl or the page cache
 * decides. When all threads work, it prints `working`.
 *
 *   own        each thread touches memory of its own and uses it
 *   waits      each thread touches memory of its own and sleeps
 *   file       all threads read all of FILE, which is mapped
 *   table      the main thread touches a table, and all threads read all of it
 *   computes   the same, but a thread computes 4,096 steps for each line that it reads
 *   backends   the main process touches shared memory, and a process on each CPU uses all of it */
#define _GNU_SOURCE
#include "lines.h"
#include "placement.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { OWN = 2 << 20, SHARED = 8 << 20, MAX_CPUS = 64, STEPS = 4096 };

static const char *kind;
static double end;
static char *shared;
static size_t bytes = SHARED;
static int cpus[MAX_CPUS], working, all_cpus;
static volatile uint64_t results[MAX_CPUS][8];

static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* In registers alone. */
static uint64_t computed(uint64_t seed)
{
    for (int step = 0; step < STEPS; step++)
        seed = seed * 6364136223846793005u + (seed >> 33);
    return seed;
}

static void compute(int self)
{
    uint64_t seed = self + 1;
    for (size_t at = 0; now() < end; at = (at + LINE) % bytes)
        seed = computed(seed + *(const volatile uint64_t *)(shared + at));
    results[self][0] = seed;
}

static void *work(void *number)
{
    int self = (int)(intptr_t)number;
    bind_to_cpu(cpus[self]);
    char *own = is("own") || is("waits") ? fresh_memory(OWN) : NULL;
    if (own)
        touch_pages(own, OWN);
    if (__atomic_add_fetch(&working, 1, __ATOMIC_RELAXED) == all_cpus) {
        printf("working\n");
        fflush(stdout);
    }
    if (is("computes")) {
        compute(self);
        return NULL;
    }
    while (now() < end) {
        if (is("waits"))
            sleep(1 + (unsigned)(end - now()));
        else if (own)
            increment_lines(own, OWN);
        else if (is("backends"))
            increment_lines(shared, bytes);
        else
            results[self][0] = read_lines(shared, bytes);
    }
    return NULL;
}

static void map_file(const char *name)
{
    struct stat about;
    int file = open(name, O_RDONLY);
    if (file < 0 || fstat(file, &about))
        fail("%s: %s", name, strerror(errno));
    bytes = about.st_size;
    shared = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED)
        fail("cannot map %s: %s", name, strerror(errno));
}

/* A process of its own for each CPU. */
static void run_processes(int count)
{
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0)
            fail("cannot fork: %s", strerror(errno));
        if (child == 0) {
            work((void *)(intptr_t)i);
            _exit(0);
        }
    }
    for (int i = 0, status; i < count; i++)
        if (wait(&status) < 0 || status)
            fail("a process has failed");
}

static void run_threads(int count)
{
    pthread_t threads[MAX_CPUS];
    for (intptr_t i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            fail("cannot start a thread");
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

int main(int count, char **words)
{
    if (count < 3 || count > 4)
        bad_arguments("usage: cases own|waits|file|table|computes|backends SECONDS [FILE]");
    kind = words[1];
    end = now() + number("SECONDS", words[2], 1, 3600);
    all_cpus = allowed_cpus(cpus, MAX_CPUS);
    bind_to_cpu(cpus[0]);
    if (is("file")) {
        map_file(count == 4 ? words[3] : "");
    } else if (!is("own") && !is("waits")) {
        shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
            fail("cannot map %zu bytes: %s", bytes, strerror(errno));
        touch_pages(shared, bytes);
    }
    if (is("backends"))
        run_processes(all_cpus);
    else
        run_threads(all_cpus);
    return 0;
}
