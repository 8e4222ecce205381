/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes that begin while threads are anywhere in the allocator. */
#include "cases.h"
#include <spawn.h>

enum { WORKERS = 4, KEPT = 300 };
static atomic_bool over;
static atomic_long allocated;
static unsigned char *kept[WORKERS][KEPT];

static size_t size_of(uint64_t *state)
{
    uint64_t kind = below(state, 100);
    return kind == 0 ? below(state, 700000) : kind < 10 ? below(state, 30000) : below(state, 1000);
}

/* Keeps some blocks, so that a child finds the heap of each thread in use. */
static void *allocate_until_over(void *own)
{
    unsigned char **blocks = own;
    uint64_t state = (uint64_t)(uintptr_t)own | 1;
    while (!atomic_load(&over)) {
        uint64_t at = below(&state, KEPT);
        unsigned char *old = blocks[at], *block = malloc(size_of(&state) + 1);
        CHECK(block);
        block[0] = 42;
        __atomic_store_n(&blocks[at], block, __ATOMIC_RELEASE);
        free(old);
        atomic_fetch_add(&allocated, 1);
    }
    return NULL;
}

static void *allocate_some(void *argument)
{
    static _Thread_local void *blocks[100];
    uint64_t state = (uint64_t)(uintptr_t)argument;
    for (int i = 0; i < 1000; i++) {
        uint64_t at = below(&state, 100);
        size_t size = size_of(&state);
        blocks[at] = realloc(blocks[at], size + 1);
        CHECK(blocks[at]);
        memset(blocks[at], (int)at, size + 1);
    }
    for (int i = 0; i < 100; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    return NULL;
}

/* The child is whole: it and its threads allocate. A sanitizer's malloc does not live in it: the C library asks it for
   memory when a thread starts, and it waits for a lock that a thread of the parent had. */
static void live_in_child(void)
{
    allocate_some((void *)3);
    if (SANITIZED)
        return;
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        threads[i] = started(allocate_some, (void *)(i + 5));
    for (int i = 0; i < 2; i++)
        joined(threads[i]);
}

static void start_workers(pthread_t threads[WORKERS])
{
    for (int i = 0; i < WORKERS; i++)
        threads[i] = started(allocate_until_over, kept[i]);
    while (atomic_load(&allocated) < 1000)
        sched_yield();
}

static void end_workers(pthread_t threads[WORKERS])
{
    atomic_store(&over, true);
    for (int i = 0; i < WORKERS; i++) {
        joined(threads[i]);
        for (int at = 0; at < KEPT; at++) {
            CHECK(!kept[i][at] || kept[i][at][0] == 42);
            free(kept[i][at]);
        }
    }
}

static void forks_while_threads_allocate(void)
{
    pthread_t threads[WORKERS];
    start_workers(threads);
    for (int i = 0; i < (SANITIZED ? 10 : 40); i++) {
        pid_t child = fork();
        if (child == 0) {
            live_in_child();
            if (i % 10 == 0) {
                pid_t grandchild = fork();
                if (grandchild == 0) {
                    live_in_child();
                    _exit(4);
                }
                wait_for(grandchild, 4);
            }
            _exit(3);
        }
        wait_for(child, 3);
    }
    end_workers(threads);
}

/* Several threads fork at once. */
static void *fork_often(void *unused)
{
    for (int i = 0; i < (SANITIZED ? 5 : 30); i++) {
        pid_t child = fork();
        if (child == 0) {
            allocate_some((void *)7);
            exit(5);
        }
        wait_for(child, 5);
        allocate_some((void *)9);
    }
    return unused;
}

static void threads_fork_at_once(void)
{
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        threads[i] = started(fork_often, NULL);
    for (int i = 0; i < WORKERS; i++)
        joined(threads[i]);
}

/* A thread that waits: what it allocated is not changed while the others fork. */
enum { HELD = 500 };
static void *held[HELD];
static pthread_barrier_t barrier;

static void allocate_held(void)
{
    for (size_t i = 0; i < HELD; i++) {
        held[i] = malloc(i * i);
        pattern_write(held[i], i * i, i);
    }
}

static void *hold(void *unused)
{
    allocate_held();
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return unused;
}

static void free_held(void)
{
    for (size_t i = 0; i < HELD; i++) {
        CHECK(pattern_is_there(held[i], i * i, i * i, i));
        free(held[i]);
    }
}

static void children_free_blocks_of_threads_that_they_lack(void)
{
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t thread = started(hold, NULL);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            free_held();
            live_in_child();
            _exit(3);
        }
        wait_for(child, 3);
    }
    pthread_barrier_wait(&barrier);
    joined(thread);
    free_held();
}

/* Handlers of the program's own run among those of the allocator, before and after them. */
static void *of_handlers;

static void allocate_in_handler(void)
{
    void *old = of_handlers;
    of_handlers = memset(malloc(5000), 1, 5000);
    free(old);
    free(memset(malloc(400000), 1, 400000));
}

__attribute__((constructor)) static void register_early(void)
{
    if (getenv("ALLOC_HANDLERS"))
        pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler);
}

static void handlers_of_fork_allocate(void)
{
    if (!getenv("ALLOC_HANDLERS")) {
        setenv("ALLOC_HANDLERS", "1", 1);
        execl("/proc/self/exe", "processes", "handlers_of_fork_allocate", NULL);
    }
    pthread_t threads[WORKERS];
    CHECK(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler) == 0);
    start_workers(threads);
    for (int i = 0; i < (SANITIZED ? 5 : 20); i++) {
        pid_t child = fork();
        if (child == 0) {
            live_in_child();
            _exit(3);
        }
        wait_for(child, 3);
    }
    end_workers(threads);
}

static void programs_start_while_threads_allocate(void)
{
    pthread_t threads[WORKERS];
    char *const arguments[] = {"true", NULL}, *const environment[] = {NULL};
    start_workers(threads);
    for (int i = 0; i < 50; i++) {
        pid_t child;
        CHECK(posix_spawnp(&child, "true", NULL, NULL, arguments, environment) == 0);
        wait_for(child, 0);
        FILE *stream = popen("echo a; true", "r");
        char line[8] = "";
        CHECK(stream && fgets(line, sizeof line, stream) && pclose(stream) == 0 && line[0] == 'a');
    }
    end_workers(threads);
}

/* The child shares the heap until it ends. */
static void vfork_in_between(void)
{
    for (volatile int i = 0; i < 50; i++) {
        allocate_some((void *)11);
        pid_t child = vfork();
        if (child == 0)
            _exit(6);
        wait_for(child, 6);
    }
}

/* A copy of the process of which the C library is not told; it has no other thread. */
static void raw_fork(void)
{
    for (int round = 0; round < 10; round++) {
        allocate_held();
        pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (child == 0) {
            free_held();
            allocate_some((void *)13);
            _exit(2);
        }
        wait_for(child, 2);
        free_held();
    }
}

const struct test CASES[] = {
    {"forks_while_threads_allocate", forks_while_threads_allocate},
    {"threads_fork_at_once", threads_fork_at_once},
    {"children_free_blocks_of_threads_that_they_lack", children_free_blocks_of_threads_that_they_lack},
    {"handlers_of_fork_allocate", handlers_of_fork_allocate},
    {"programs_start_while_threads_allocate", programs_start_while_threads_allocate},
    {"vfork_in_between", vfork_in_between},
    {"raw_fork", raw_fork},
    {NULL, NULL},
};
