/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads that begin, end and are interrupted while blocks go between them. */
#include "cases.h"
#include <limits.h>
#include <sys/time.h>

enum { PLACES = 256, WORKERS = 4 };
static void *_Atomic places[PLACES];
static atomic_bool over;

/* A block that tells its size, so that who gets it can check it. */
static void *marked(size_t size)
{
    size_t *block = malloc(size + sizeof size);
    CHECK(block);
    *block = size;
    pattern_write(block + 1, size, size);
    return block;
}

static void marked_free(void *block)
{
    if (!block)
        return;
    size_t size = *(size_t *)block;
    CHECK(pattern_is_there((size_t *)block + 1, size, size, size));
    free(block);
}

static size_t some_size(uint64_t *state)
{
    uint64_t kind = below(state, 300);
    return kind == 0 ? below(state, 2 * MIB) : kind < 20 ? below(state, 40000) : below(state, 1000);
}

static void exchange(uint64_t *state)
{
    void *block = below(state, 4) ? marked(some_size(state)) : NULL;
    marked_free(atomic_exchange(&places[below(state, PLACES)], block));
}

static void *exchange_often(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    for (int i = 0; i < (SANITIZED ? 5000 : 40000); i++)
        exchange(&state);
    return NULL;
}

static void *exchange_until_over(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    while (!atomic_load(&over))
        exchange(&state);
    return NULL;
}

static void free_places(void)
{
    for (int i = 0; i < PLACES; i++)
        marked_free(atomic_exchange(&places[i], NULL));
}

static void blocks_go_between_threads(void)
{
    pthread_t threads[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++)
        threads[i] = started(exchange_often, (void *)(i + 1));
    for (int i = 0; i < WORKERS; i++)
        joined(threads[i]);
    free_places();
}

/* One allocates, the other frees: what was freed is used again. */
enum { QUEUE = 512 };
static void *_Atomic queue[QUEUE];

static int passed(void)
{
    return SANITIZED ? 20000 : rounds(30000, 200000);
}

static void *producer(void *unused)
{
    uint64_t state = 77;
    for (int i = 0, count = passed(); i < count; i++) {
        void *block = marked(some_size(&state) / 4);
        while (atomic_load(&queue[i % QUEUE]))
            sched_yield();
        atomic_store(&queue[i % QUEUE], block);
    }
    return unused;
}

static void one_allocates_another_frees(void)
{
    size_t before = kib_of_process("VmRSS:");
    pthread_t thread = started(producer, NULL);
    for (int i = 0, count = passed(); i < count; i++) {
        void *block;
        while (!(block = atomic_exchange(&queue[i % QUEUE], NULL)))
            sched_yield();
        marked_free(block);
    }
    joined(thread);
    size_t grown = kib_of_process("VmRSS:") - before;
    snprintf(circumstances, sizeof circumstances, "; grown by %zu KiB", grown);
    CHECK(SANITIZED || grown < 64 * 1024);
}

/* Blocks of a thread that is no more. */
enum { LEFT = 200 };

static void *leave_blocks(void *left)
{
    uint64_t state = (uint64_t)(uintptr_t)left;
    for (int i = 0; i < LEFT; i++)
        ((void **)left)[i] = marked(some_size(&state));
    return NULL;
}

static void *free_half(void *left)
{
    for (int i = 0; i < LEFT; i += 2)
        marked_free(((void **)left)[i]);
    return NULL;
}

static void blocks_outlive_their_thread(void)
{
    static void *left[8][LEFT];
    for (int round = 0; round < (SANITIZED ? 5 : 30); round++) {
        for (int i = 0; i < 8; i++)
            joined(started(leave_blocks, left[i]));
        pthread_t threads[8];
        for (int i = 0; i < 8; i++)
            threads[i] = started(free_half, left[i]);
        for (int i = 0; i < 8; i++)
            for (int at = 1; at < LEFT; at += 2)
                marked_free(left[i][at]);
        for (int i = 0; i < 8; i++)
            joined(threads[i]);
    }
}

/* A destructor allocates and frees up to the last round of destructors. */
static pthread_key_t keys[8];

static void destructor(void *block)
{
    marked_free(block);
    void *again = marked(3000);
    marked_free(marked(100));
    static __thread int rounds;
    if (++rounds < 8 * PTHREAD_DESTRUCTOR_ITERATIONS - 8)
        pthread_setspecific(keys[rounds % 8], again);
    else
        marked_free(again);
}

static void *with_keys(void *unused)
{
    for (int i = 0; i < 8; i++)
        CHECK(pthread_setspecific(keys[i], marked(200 + (size_t)i * 5000)) == 0);
    return unused;
}

static void destructors_allocate(void)
{
    for (int i = 0; i < 8; i++)
        CHECK(pthread_key_create(&keys[i], destructor) == 0);
    pthread_t threads[WORKERS];
    for (int round = 0; round < (SANITIZED ? 20 : 100); round++) {
        for (int i = 0; i < WORKERS; i++)
            threads[i] = started(with_keys, NULL);
        for (int i = 0; i < WORKERS; i++)
            joined(threads[i]);
    }
}

static void *one_of_many(void *place)
{
    void **blocks = place;
    marked_free(blocks[0]);
    for (size_t i = 0; i < 4; i++)
        marked_free(marked(i * i * 1000));
    blocks[0] = marked((uintptr_t)place % 3000);
    return NULL;
}

/* What a thread leaves behind is used by the next one. */
static void ten_thousand_threads(void)
{
    static void *blocks[100];
    size_t rss = 0, size = 0;
    for (int i = 0, count = SANITIZED ? 1100 : rounds(2000, 10000); i < count; i++) {
        joined(started(one_of_many, &blocks[i % 100]));
        if (i == 1000) {
            rss = kib_of_process("VmRSS:");
            size = kib_of_process("VmSize:");
        }
    }
    CHECK(SANITIZED || kib_of_process("VmRSS:") < rss + 8 * 1024);
    CHECK(SANITIZED || kib_of_process("VmSize:") < size + 256 * 1024);
    for (int i = 0; i < 100; i++)
        marked_free(blocks[i]);
}

static pthread_barrier_t all_there;

static void *one_of_a_thousand(void *place)
{
    one_of_many(place);
    pthread_barrier_wait(&all_there);
    one_of_many(place);
    return NULL;
}

/* On the smallest stacks that there are. */
static void thousand_at_once(void)
{
    enum { MANY = SANITIZED ? 100 : 1000 };
    static void *blocks[MANY];
    static pthread_t threads[MANY];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    /* A sanitizer needs more. */
    CHECK(pthread_attr_setstacksize(&attributes, SANITIZED ? 128 * KIB : least) == 0);
    pthread_barrier_init(&all_there, NULL, MANY);
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_create(&threads[i], &attributes, one_of_a_thousand, &blocks[i]) == 0);
    for (int i = 0; i < MANY; i++)
        joined(threads[i]);
    for (int i = 0; i < MANY; i++)
        marked_free(blocks[i]);
}

/* So much that the allocator asks the kernel how much memory is left. */
static void *allocate_much(void *unused)
{
    enum { BLOCKS = 96, OF_THE_PROGRAM = 6 * KIB };
    volatile char in_use[OF_THE_PROGRAM];
    void *blocks[BLOCKS];
    in_use[0] = in_use[OF_THE_PROGRAM - 1] = 1;
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = malloc(MIB)));
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return unused;
}

static void the_smallest_stack_is_enough(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    CHECK(pthread_attr_setstacksize(&attributes, SANITIZED ? 128 * KIB : least) == 0);
    CHECK(pthread_create(&thread, &attributes, allocate_much, NULL) == 0);
    joined(thread);
}

/* A signal that comes anywhere in the allocator, whose handler does not allocate. */
static atomic_int interruptions;

static void count_interruption(int number)
{
    (void)number;
    int saved = errno;
    atomic_fetch_add(&interruptions, 1);
    sched_yield();
    errno = saved;
}

static void signals_interrupt(void)
{
    pthread_t threads[WORKERS];
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = count_interruption, .sa_flags = SA_RESTART}, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = count_interruption}, NULL);
    struct itimerval often = {{0, 200}, {0, 200}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (uintptr_t i = 0; i < WORKERS; i++)
        threads[i] = started(exchange_until_over, (void *)(i + 1));
    for (int i = 0, count = SANITIZED ? 1000 : rounds(2000, 10000); atomic_load(&interruptions) < count; i++)
        pthread_kill(threads[i % WORKERS], SIGUSR1);
    atomic_store(&over, true);
    for (int i = 0; i < WORKERS; i++)
        joined(threads[i]);
    often = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    free_places();
}

/* No function is a cancellation point: blocks would be lost, and locks held. */
static atomic_int reached;

static void *cancelled(void *unused)
{
    pthread_cancel(pthread_self());
    for (size_t size = 1; size < 64 * MIB; size = size * 3 + 1) {
        char *block = malloc(size);
        CHECK(block);
        block[0] = 1;
        block = realloc(block, size * 2);
        CHECK(block);
        free(block);
        free(memalign(64 * KIB, size));
        free(calloc(size, 1));
    }
    if (has_function("malloc_trim"))
        malloc_trim(0);
    atomic_fetch_add(&reached, 1);
    pthread_testcancel();
    return unused;
}

static void calls_are_not_cancelled(void)
{
    for (int i = 0; i < 10; i++) {
        void *result;
        pthread_t thread = started(cancelled, NULL);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    }
    CHECK(atomic_load(&reached) == 10);
}

/* Threads that change their CPU all the time. */
static void *moving(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    cpu_set_t all, one;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    for (int i = 0; i < (SANITIZED ? 300 : 2000); i++) {
        int cpu = (int)below(&state, 64);
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (CPU_ISSET(cpu, &all))
            CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
        for (int round = 0; round < 5; round++)
            exchange(&state);
    }
    return NULL;
}

static void threads_move(void)
{
    pthread_t threads[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++)
        threads[i] = started(moving, (void *)(i + 1));
    for (int i = 0; i < WORKERS; i++)
        joined(threads[i]);
    free_places();
}

const struct test CASES[] = {
    {"blocks_go_between_threads", blocks_go_between_threads},
    {"one_allocates_another_frees", one_allocates_another_frees},
    {"blocks_outlive_their_thread", blocks_outlive_their_thread},
    {"destructors_allocate", destructors_allocate},
    {"ten_thousand_threads", ten_thousand_threads},
    {"thousand_at_once", thousand_at_once},
    {"the_smallest_stack_is_enough", the_smallest_stack_is_enough},
    {"signals_interrupt", signals_interrupt},
    {"calls_are_not_cancelled", calls_are_not_cancelled},
    {"threads_move", threads_move},
    {NULL, NULL},
};
