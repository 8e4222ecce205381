/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* counts CASE LIBRARY ALLOCATOR   runs a child with known allocations under the library, and compares what was counted with
 *                                 what a child counts that does nothing. ALLOCATOR is empty for that of the C library.
 * counts list                     prints the cases. */
#include "layout.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            dprintf(2, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                       \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

enum { BLOCKS = 1000, SIZE = 3000, THREADS = 4, CHILDREN = 3, SITE_BLOCKS = 77 };

static void *volatile last;

static void take(size_t count, size_t bytes, bool frees)
{
    for (size_t i = 0; i < count; i++) {
        /* Of this thread: another one sets `last` too. */
        void *block = malloc(bytes);
        CHECK(block);
        last = block;
        if (frees)
            free(block);
    }
}

/* What the children do. */
static void nothing(void)
{
}

static void sizes(void)
{
    take(BLOCKS, SIZE, true);
    take(7, 1 << 20, false);
}

static void functions(void)
{
    void *block = NULL;
    for (int i = 0; i < 10; i++)
        free(calloc(3, 1000));
    for (int i = 0; i < 20; i++)
        free(aligned_alloc(64, 6400));
    for (int i = 0; i < 30; i++) {
        CHECK(posix_memalign(&block, 64, 640) == 0);
        free(block);
    }
    block = realloc(NULL, 100);
    for (size_t i = 1; i <= 40; i++)
        block = realloc(block, i * 5000);
    free(block);
    free(NULL);
}

static void failures(void)
{
    volatile size_t half = SIZE_MAX / 2;
    errno = 0;
    for (int i = 0; i < 5; i++) {
        last = malloc(half);
        CHECK(!last && errno == ENOMEM);
    }
    last = malloc(SIZE);
    memset(last, 7, SIZE);
    void *other = realloc(last, half);
    CHECK(!other && ((char *)last)[SIZE - 1] == 7);
    last = calloc(half, 4);
    CHECK(!last);
}

static void *in_thread(void *unused)
{
    take(BLOCKS, SIZE, true);
    return unused;
}

static void threads(void)
{
    pthread_t all[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&all[i], NULL, in_thread, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(all[i], NULL) == 0);
}

static void end_child(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void forks(void)
{
    void *kept = malloc(1 << 20);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = i ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0) {
            take(BLOCKS, SIZE, true);
            free(kept);
            _exit(0);
        }
        end_child(child);
    }
}

static void is_killed(void)
{
    take(BLOCKS, SIZE, true);
    take(7, 1 << 20, false);
    kill(getpid(), SIGKILL);
}

static __attribute__((noinline)) void site(void)
{
    take(SITE_BLOCKS, SIZE, true);
    __asm__ volatile("");
}

/* A handler that leaves by a jump, and one that allocates. */
static void on_signal(int number)
{
    (void)number;
    take(10, SIZE, true);
}

static void handlers(void)
{
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 10; i++)
        raise(SIGUSR1);
    take(BLOCKS, SIZE, true);
}

/* What was counted. */
struct sums {
    uint64_t allocations, requested, frees, reallocs, zeroed, aligned, failed;
    uint64_t lives, site_blocks, live, peak;
    unsigned processes;
};

static struct sums sums_of(const struct count_file *file)
{
    struct sums sums = {0};
    for (int i = 0; i < SHARDS; i++) {
        const struct count_shard *shard = &file->shards[i];
        for (int step = 0; step < SIZES; step++)
            sums.allocations += shard->sizes[step].blocks, sums.requested += shard->sizes[step].bytes;
        sums.frees += shard->frees;
        sums.reallocs += shard->reallocs, sums.zeroed += shard->zeroed, sums.aligned += shard->aligned;
        sums.failed += shard->failed;
    }
    for (int i = 0; i < LIFES; i++)
        sums.lives += file->by_time[i].blocks;
    for (int i = 0; i < SITES; i++)
        sums.site_blocks += file->sites[i].blocks;
    sums.processes = (unsigned)file->header.processes;
    sums.live = file->processes[0].live;
    sums.peak = file->processes[0].peak;
    return sums;
}

static uint64_t blocks_of_step(const struct count_file *file, unsigned step)
{
    uint64_t blocks = 0;
    for (int i = 0; i < SHARDS; i++)
        blocks += file->shards[i].sizes[step].blocks;
    return blocks;
}

static const char *library, *allocator;

/* Runs a child, and returns what it counted. Every block is sampled. */
static struct count_file *counted(const char *what, int expected)
{
    char path[64], preload[8192];
    int file = memfd_create("counts", 0);
    CHECK(file >= 0 && ftruncate(file, sizeof(struct count_file)) == 0);
    struct count_file *counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(counts != MAP_FAILED);
    counts->header.magic = COUNT_MAGIC;
    counts->header.version = COUNT_VERSION;
    counts->header.token = 0xabc;
    counts->header.every = 1;
    counts->header.ns_per_tick = UINT64_C(1) << 32;
    counts->header.has_chains = 1;
    snprintf(path, sizeof path, "/proc/%d/fd/%d:abc", (int)getpid(), file);
    snprintf(preload, sizeof preload, "%s%s%s", library, allocator[0] ? ":" : "", allocator);
    pid_t child = fork();
    if (child == 0) {
        setenv("NUMA_COUNT", path, 1);
        setenv("LD_PRELOAD", preload, 1);
        execl("/proc/self/exe", "counts", "child", what, NULL);
        _exit(9);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == expected);
    return counts;
}

/* The same without what a process counts that does nothing. */
static struct sums only(const struct count_file *file)
{
    struct sums all = sums_of(file), none = sums_of(counted("nothing", 0));
    all.allocations -= none.allocations, all.requested -= none.requested, all.frees -= none.frees;
    all.reallocs -= none.reallocs, all.zeroed -= none.zeroed, all.aligned -= none.aligned, all.failed -= none.failed;
    all.lives -= none.lives, all.site_blocks -= none.site_blocks, all.live -= none.live;
    return all;
}

static void sizes_are_exact(void)
{
    struct count_file *file = counted("sizes", 0);
    struct sums sums = only(file);
    CHECK(sums.allocations == BLOCKS + 7 && sums.frees == BLOCKS && sums.failed == 0);
    CHECK(sums.requested == BLOCKS * SIZE + (7u << 20));
    CHECK(sums.live >= 7u << 20 && sums.live < (7u << 20) + (7u << 16) && sums.peak >= 7u << 20);
    /* 2560 to 3071, and 2^20 to 1.25 * 2^20. */
    CHECK(blocks_of_step(file, 41) >= BLOCKS && blocks_of_step(file, 76) == 7);
}

static void functions_are_counted_apart(void)
{
    struct sums sums = only(counted("functions", 0));
    CHECK(sums.zeroed == 10 && sums.aligned == 50 && sums.reallocs == 40);
    CHECK(sums.allocations == 10 + 50 + 1 + 40 && sums.frees == sums.allocations && sums.live == 0);
    CHECK(sums.requested == 30000 + 128000 + 19200 + 100 + 5000 * 820);
}

static void failures_are_no_allocations(void)
{
    struct sums sums = only(counted("failures", 0));
    CHECK(sums.failed == 7 && sums.allocations == 1 && sums.frees == 0 && sums.reallocs == 0);
}

static void threads_are_counted_together(void)
{
    struct sums sums = only(counted("threads", 0));
    CHECK(sums.allocations >= THREADS * BLOCKS && sums.allocations < THREADS * BLOCKS + 50);
    CHECK(sums.requested >= THREADS * BLOCKS * SIZE && sums.frees >= THREADS * BLOCKS);
}

static void children_are_counted_too(void)
{
    struct count_file *file = counted("forks", 0);
    struct sums sums = only(file);
    CHECK(sums.allocations == CHILDREN * BLOCKS + 1 && sums.frees == CHILDREN * BLOCKS + CHILDREN);
    CHECK(sums.processes == CHILDREN + 1 && file->processes[0].parent == 0);
    for (int i = 1; i <= CHILDREN; i++) {
        const struct count_process *process = &file->processes[i];
        /* It has what the parent had, and freed a part. */
        CHECK(process->parent == 1 && process->image == 0 && process->pid != file->processes[0].pid);
        CHECK(process->peak >= 1 << 20 && process->live < process->peak - SIZE);
    }
    CHECK(sums.live >= 1 << 20);
}

static void a_killed_process_is_counted(void)
{
    struct sums sums = only(counted("is_killed", SIGKILL));
    CHECK(sums.allocations == BLOCKS + 7 && sums.frees == BLOCKS);
}

static void all_lives_end(void)
{
    struct count_file *file = counted("sizes", 0);
    struct sums sums = only(file);
    CHECK(file->header.lost_lives == 0 && file->header.lost_sites == 0);
    CHECK(sums.lives == 1024 * BLOCKS && sums.site_blocks == 1024 * (BLOCKS + 7));
}

static void a_site_has_its_chain(void)
{
    struct count_file *file = counted("site", 0);
    const struct count_site *found = NULL;
    for (int i = 0; i < SITES; i++)
        if (file->sites[i].samples == SITE_BLOCKS)
            found = &file->sites[i];
    CHECK(found && found->bytes == SITE_BLOCKS * SIZE && found->freed_blocks == 1024 * SITE_BLOCKS);
    /* take, site, main at least. */
    CHECK(found->frames_known >= 3);
    for (uint64_t frame = 0; frame < 3; frame++) {
        bool is_known = false;
        for (uint64_t i = 0; i < file->header.modules; i++) {
            const struct count_module *module = &file->modules[i];
            is_known |= found->frames[frame] - module->from < module->to - module->from &&
                        strstr(module->path, "/counts") && module->image == 1;
        }
        CHECK(is_known);
    }
}

static void handlers_are_counted(void)
{
    struct sums sums = only(counted("handlers", 0));
    CHECK(sums.allocations == BLOCKS + 100 && sums.frees == BLOCKS + 100);
}

/* What is no file of counts is left alone. */
static void other_files_are_left_alone(void)
{
    char zeros[4096] = {0}, path[64];
    int file = memfd_create("other", 0);
    CHECK(file >= 0 && ftruncate(file, sizeof(struct count_file)) == 0);
    snprintf(path, sizeof path, "/proc/%d/fd/%d:abc", (int)getpid(), file);
    const char *names[] = {path, "/nonexistent:1", "x", ":", "", "/proc/self/maps:0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pid_t child = fork();
        if (child == 0) {
            setenv("NUMA_COUNT", names[i], 1);
            setenv("LD_PRELOAD", library, 1);
            execl("/proc/self/exe", "counts", "child", "sizes", NULL);
            _exit(9);
        }
        end_child(child);
    }
    char content[4096];
    CHECK(pread(file, content, sizeof content, 0) == sizeof content && memcmp(content, zeros, sizeof content) == 0);
}

#define OF(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} children[] = {OF(nothing), OF(sizes), OF(functions), OF(failures), OF(threads),
                OF(forks),   OF(is_killed), OF(site), OF(handlers)},
  cases[] = {OF(sizes_are_exact),          OF(functions_are_counted_apart), OF(failures_are_no_allocations),
             OF(threads_are_counted_together), OF(children_are_counted_too), OF(a_killed_process_is_counted),
             OF(all_lives_end),            OF(a_site_has_its_chain),        OF(handlers_are_counted),
             OF(other_files_are_left_alone)};

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "list";
    bool is_child = strcmp(what, "child") == 0 && count == 3;
    for (size_t i = 0; is_child && i < sizeof children / sizeof *children; i++) {
        if (strcmp(arguments[2], children[i].name) == 0) {
            children[i].run();
            return 0;
        }
    }
    library = count > 2 ? arguments[2] : "";
    allocator = count > 3 ? arguments[3] : "";
    bool lists = strcmp(what, "list") == 0;
    for (size_t i = 0; !is_child && i < sizeof cases / sizeof *cases; i++) {
        if (lists)
            puts(cases[i].name);
        if (strcmp(what, cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    }
    /* An unknown case is a mistake of who names it. */
    return lists ? 0 : 2;
}
