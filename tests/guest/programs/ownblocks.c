/* ownblocks [OPERATIONS [MILLISECONDS [LIVES]]]     default 10000 10 4
 *
 * Two threads for each node allocate blocks of 16 bytes to 8 MiB, touch, resize and free them, and hand them to
 * each other. Every MILLISECONDS each goes to the next node. After OPERATIONS it ends and leaves its blocks to the
 * others; a new thread takes its place, LIVES times in all. Before a thread moves or ends it asks where the pages
 * of the blocks are that it allocated since it came: the same pages for each block, so that one with many small
 * blocks counts often. Prints, for blocks up to 32 KiB, for larger ones and for all:
 *
 *   operations N moves M
 *   small pages N local M
 *   large pages N local M
 *   pages N local M */
#define _GNU_SOURCE
#include "placement.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { OWN = 256, AT_ONCE = 16, SHARED = 256, SMALL = 32 << 10, LARGE = 8 << 20, MOST_THREADS = 2 * MAX_NODES };
/* What a thread holds at most; what it hands over comes on top. */
enum { MOST_BYTES = 12 << 20, MOST_SHARED = 256 << 10 };

struct block {
    char *start;
    size_t bytes;
    /* Allocated since the thread came to its node. */
    bool is_new;
};

struct counts {
    long pages, local;
};

struct worker {
    pthread_t id;
    uint64_t state;
    int node;
    size_t held;
    struct block blocks[OWN];
};

static long operations = 10000, milliseconds = 10, lives = 4;
static int nodes[MAX_NODES], node_count;
static struct worker workers[MOST_THREADS];
static void *_Atomic shared[SHARED];
static atomic_long small_pages, small_local, large_pages, large_local, moves;

static uint64_t below(struct worker *worker, uint64_t limit)
{
    worker->state ^= worker->state << 13;
    worker->state ^= worker->state >> 7;
    worker->state ^= worker->state << 17;
    return (worker->state >> 11) % limit;
}

/* Of each power of two as many. */
static size_t some_bytes(struct worker *worker)
{
    size_t power = (size_t)16 << (below(worker, 12) ? below(worker, 11) : 11 + below(worker, 8));
    return power + below(worker, power < LARGE ? power : 1);
}

static void let_go(struct worker *worker, struct block *block)
{
    worker->held -= block->bytes;
    block->start = NULL;
}

static void allocate(struct worker *worker, struct block *block)
{
    size_t bytes = some_bytes(worker);
    if (worker->held + bytes > MOST_BYTES)
        bytes %= SMALL;
    void *start = NULL;
    switch (below(worker, 8)) {
    case 0: start = calloc(1, bytes + 1); break;
    case 1:
        if (posix_memalign(&start, (size_t)64 << below(worker, 8), bytes + 1))
            start = NULL;
        break;
    default: start = malloc(bytes + 1);
    }
    if (!start)
        fail("no memory for %zu bytes", bytes);
    touch_pages(start, bytes);
    ((char *)start)[bytes] = 1;
    *block = (struct block){start, bytes, true};
    worker->held += bytes;
}

static void resize(struct worker *worker, struct block *block)
{
    size_t bytes = some_bytes(worker);
    if (worker->held + bytes > MOST_BYTES)
        bytes = block->bytes / 2;
    char *start = realloc(block->start, bytes + 1);
    if (!start)
        fail("no memory for %zu bytes", bytes);
    touch_pages(start, bytes);
    start[bytes] = 1;
    worker->held += bytes - block->bytes;
    block->start = start;
    block->bytes = bytes;
}

static void operate(struct worker *worker)
{
    struct block *block = &worker->blocks[below(worker, OWN)];
    if (!block->start) {
        allocate(worker, block);
        return;
    }
    switch (below(worker, 6)) {
    case 0: resize(worker, block); break;
    case 1:
    case 2:
        /* Another thread frees it, as this one frees what it finds. */
        if (block->bytes <= MOST_SHARED) {
            free(atomic_exchange(&shared[below(worker, SHARED)], block->start));
            let_go(worker, block);
            break;
        }
        /* fall through */
    default: free(block->start); let_go(worker, block);
    }
}

static struct counts look_at(const struct worker *worker, const struct block *block)
{
    struct counts counts = {0, 0};
    long pages[MAX_NODES] = {0};
    uintptr_t first = (uintptr_t)block->start / PAGE * PAGE, end = (uintptr_t)block->start + block->bytes + 1;
    count_pages((void *)first, end - first, pages);
    for (int node = 0; node < MAX_NODES; node++)
        counts.pages += pages[node];
    counts.local = pages[worker->node];
    return counts;
}

/* Where the pages of its new blocks are, which are old from now on. */
static void look(struct worker *worker)
{
    for (int i = 0; i < OWN; i++) {
        struct block *block = &worker->blocks[i];
        if (!block->start || !block->is_new)
            continue;
        struct counts counts = look_at(worker, block);
        bool is_small = block->bytes < SMALL;
        atomic_fetch_add(is_small ? &small_pages : &large_pages, counts.pages);
        atomic_fetch_add(is_small ? &small_local : &large_local, counts.local);
        block->is_new = false;
    }
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000) + time.tv_nsec / 1000000;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    int place = (int)(worker - workers);
    for (long left = operations; left > 0; place++) {
        worker->node = nodes[place % node_count];
        bind_to_cpu(first_cpu_of_node(worker->node));
        int64_t end = now() + milliseconds;
        while (left > 0 && now() < end) {
            for (int i = 0; i < AT_ONCE; i++)
                operate(worker);
            left -= AT_ONCE;
        }
        look(worker);
        moves++;
    }
    for (int i = 0; i < OWN; i++)
        if (worker->blocks[i].start && worker->blocks[i].bytes > MOST_SHARED)
            free(worker->blocks[i].start);
        else
            free(atomic_exchange(&shared[below(worker, SHARED)], worker->blocks[i].start));
    memset(worker->blocks, 0, sizeof worker->blocks);
    worker->held = 0;
    return NULL;
}

static void print_counts(const char *name, long pages, long local)
{
    printf("%spages %ld local %ld\n", name, pages, local);
}

int main(int count, char **arguments)
{
    if (count > 4)
        bad_arguments("usage: ownblocks [OPERATIONS [MILLISECONDS [LIVES]]]");
    if (count > 1)
        operations = number("OPERATIONS", arguments[1], 1, 100000000);
    if (count > 2)
        milliseconds = number("MILLISECONDS", arguments[2], 1, 10000);
    if (count > 3)
        lives = number("LIVES", arguments[3], 1, 1000);
    node_count = numbers_of(NODE_FILE "has_cpu", nodes, MAX_NODES);
    if (node_count < 1)
        fail("%shas_cpu names no node", NODE_FILE);
    int threads = 2 * node_count;
    for (long life = 0; life < lives; life++) {
        for (int i = 0; i < threads; i++) {
            workers[i].state = (uint64_t)(life * MOST_THREADS + i + 1) * 0x9e3779b97f4a7c15;
            int wrong = pthread_create(&workers[i].id, NULL, work, &workers[i]);
            if (wrong)
                fail("cannot start thread %d: %s", i, strerror(wrong));
        }
        for (int i = 0; i < threads; i++)
            pthread_join(workers[i].id, NULL);
    }
    printf("operations %ld moves %ld\n", operations * threads * lives, moves);
    print_counts("small ", small_pages, small_local);
    print_counts("large ", large_pages, large_local);
    print_counts("", small_pages + large_pages, small_local + large_local);
    return 0;
}
