/* troubled TROUBLE SECONDS
 *
 * Eight threads, two on each of four nodes, use memory for some seconds. Each trouble has a control that has none.
 *
 *   main       the main thread touches all memory first     own        each thread touches its own part
 *   bound      a policy binds all memory to node 0
 *   spread     a policy interleaves memory, of which each thread uses a part of its own
 *   turns      threads of two nodes take turns at the same memory, and the kernel moves it after them
 *   cache      all threads read a file that the main thread has read       parts     each reads what it has read itself
 *   wander     threads change the node ten times a second
 *   grow       memory of 128 MiB is touched once; for limits of control groups
 *   tables     one thread on node 0 reads a page of each 2 MiB, then uses memory on node 3        tabled     stays on node 0
 *   full       more memory is preferred on node 0 than it has, again and again        roomy     a part of what it has
 */
#define _GNU_SOURCE
#include "placement.h"
#include <fcntl.h>
#include <pthread.h>
#include <time.h>

enum { THREADS = 8, PART = 2 << 20, ALL = THREADS * PART };

#define FILE_NAME "/tmp/troubled"

static const char *trouble;
static double end;
static char *memory;
static pthread_barrier_t ready;

static int is(const char *name)
{
    return strcmp(trouble, name) == 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void use(volatile long *words, size_t bytes)
{
    for (size_t at = 0; at < bytes / sizeof *words; at += 8)
        words[at] += 1;
}

static long sum(const volatile long *words, size_t bytes)
{
    long all = 0;
    for (size_t at = 0; at < bytes / sizeof *words; at += 8)
        all += words[at];
    return all;
}

static void read_part(int file, int part)
{
    static char pieces[THREADS][1 << 16];
    for (size_t at = 0; at < PART; at += sizeof *pieces)
        if (pread(file, pieces[part], sizeof *pieces, part * (size_t)PART + at) < 0)
            fail("cannot read " FILE_NAME ": %s", strerror(errno));
}

/* The file without cached pages; who reads it next decides where they are. */
static int cold_file(void)
{
    int file = open(FILE_NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, memory, ALL) != ALL || fsync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED))
        fail("cannot make " FILE_NAME ": %s", strerror(errno));
    return file;
}

static void *work(void *number)
{
    int self = (int)(intptr_t)number;
    static int file = -1;
    char *part = memory + self * (size_t)PART;
    bind_to_cpu(self);
    if (is("own") || is("turns") || is("wander"))
        touch_pages(part, PART);
    if (is("cache") || is("parts")) {
        if (self == 0)
            file = cold_file();
        pthread_barrier_wait(&ready);
        for (int each = 0; each < THREADS; each++)
            if (is("parts") ? each == self : self == 0)
                read_part(file, each);
        pthread_barrier_wait(&ready);
        char *mapped = mmap(NULL, ALL, PROT_READ, MAP_SHARED, file, 0);
        if (mapped == MAP_FAILED)
            fail("cannot map " FILE_NAME ": %s", strerror(errno));
        while (now() < end)
            sum((long *)(mapped + self * (size_t)PART), PART);
        return NULL;
    }
    pthread_barrier_wait(&ready);
    for (long turn = 0; now() < end; turn++) {
        if (is("wander"))
            bind_to_cpu((self + 2 * ((long)(10 * now()) % 4)) % THREADS);
        if (is("turns") && self != 0 && self != 2)
            return NULL;
        int mine = !is("turns") || (long)(4 * now()) % 2 == self / 2;
        use((long *)(is("turns") ? memory : part), mine ? PART : 0);
    }
    return NULL;
}

/* Allocates this part of the memory of node 0, in percent, until the time is over. */
static void allocate(long percent)
{
    char line[128];
    long kib = 0;
    FILE *file = fopen(NODE_FILE "node0/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Node 0 MemFree: %ld", &kib) == 1)
            break;
    if (!file || kib == 0)
        fail("node 0 does not say how much memory is free");
    fclose(file);
    size_t bytes = (size_t)kib * 1024 / 100 * percent / PAGE * PAGE;
    bind_to_cpu(0);
    while (now() < end) {
        char *fresh = fresh_memory(bytes);
        place_memory(fresh, bytes, MPOL_PREFERRED, 0, 0);
        touch_pages(fresh, bytes);
        munmap(fresh, bytes);
    }
}

/* Page tables of 80 MiB on node 0 without memory of their own: a page that is only read is the kernel's page of zeros. */
static void use_with_tables(int node)
{
    enum { TABLES = 20 << 10, REACH = 2 << 20 };
    size_t bytes = (size_t)TABLES * REACH;
    bind_to_cpu(first_cpu_of_node(0));
    volatile char *sparse = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (sparse == MAP_FAILED)
        fail("cannot map %zu bytes: %s", bytes, strerror(errno));
    for (size_t at = 0; at < bytes; at += REACH)
        (void)sparse[at];
    bind_to_cpu(first_cpu_of_node(node));
    memory = fresh_memory(PART);
    touch_pages(memory, PART);
    while (now() < end)
        use((long *)memory, PART);
}

int main(int count, char **words)
{
    if (count != 3)
        bad_arguments("usage: troubled TROUBLE SECONDS");
    trouble = words[1];
    end = now() + number("SECONDS", words[2], 1, 3600);
    if (is("full") || is("roomy")) {
        allocate(is("full") ? 150 : 30);
        return 0;
    }
    if (is("tables") || is("tabled")) {
        use_with_tables(is("tables") ? 3 : 0);
        return 0;
    }
    if (is("grow")) {
        touch_pages(fresh_memory(128 << 20), 128 << 20);
        while (now() < end)
            usleep(10000);
        return 0;
    }
    uint64_t nodes = 15;
    memory = fresh_memory(ALL);
    if (is("bound"))
        place_memory(memory, ALL, MPOL_BIND, 0, 0);
    if (is("spread") && syscall(SYS_mbind, memory, ALL, MPOL_INTERLEAVE, &nodes, MAX_NODES + 1ul, 0))
        fail("cannot interleave: %s", strerror(errno));
    bind_to_cpu(0);
    if (!is("own") && !is("turns") && !is("wander"))
        touch_pages(memory, ALL);
    pthread_barrier_init(&ready, NULL, THREADS);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            fail("cannot start a thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
