/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random sequences of all operations, compared with a model of what is allocated: blocks do not overlap, keep their
 * content and have their alignment. ALLOC_SEED=N runs one seed only, ALLOC_SOAK_SECONDS further ones. */
#include "cases.h"

enum { PLACES = 1024, WORKERS = 4, OPERATIONS = SANITIZED ? 1000 : 6000 };
#define MOST_LIVE (96 * MIB)

/* A place of a block. Any thread takes the place of any other: that is how blocks are handed over. */
struct place {
    atomic_flag taken;
    unsigned char *block;
    size_t size;
    uint64_t key;
};

static struct place places[PLACES];
static atomic_size_t live;

/* What is allocated, for all to see: [from, to) of each place. */
static struct range {
    uintptr_t from, to;
} ranges[PLACES];
static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;

static void range_add(int at, void *block, size_t size)
{
    uintptr_t from = (uintptr_t)block, to = from + (size ? size : 1);
    CHECK(from && to > from);
    pthread_mutex_lock(&ranges_lock);
    for (int i = 0; i < PLACES; i++) {
        bool apart = to <= ranges[i].from || ranges[i].to <= from;
        if (!apart)
            dprintf(2, "[%#lx, %#lx) is new, [%#lx, %#lx) is in use\n", from, to, ranges[i].from, ranges[i].to);
        CHECK(apart);
    }
    ranges[at] = (struct range){from, to};
    pthread_mutex_unlock(&ranges_lock);
}

static void range_remove(int at)
{
    pthread_mutex_lock(&ranges_lock);
    ranges[at] = (struct range){0, 0};
    pthread_mutex_unlock(&ranges_lock);
}

/* 0 to 64 MiB: small sizes more often, and the same number of each power of two. */
static size_t random_size(uint64_t *state)
{
    uint64_t kind = below(state, 200);
    uint64_t powers = kind < 150 ? 11 : kind < 190 ? 16 : kind < 198 ? 22 : 27;
    uint64_t power = (uint64_t)1 << below(state, powers);
    size_t size = power - 1 + below(state, power);
    return size > 64 * MIB ? 64 * MIB : size;
}

static size_t random_alignment(uint64_t *state)
{
    return (size_t)1 << below(state, below(state, 4) ? 13 : 22);
}

static void place_fill(struct place *place, int at, void *block, size_t size, uint64_t key)
{
    size_t usable = malloc_usable_size(block);
    CHECK(usable >= size && is_aligned(block, size >= 16 ? 16 : 8));
    /* What may be used is no other's. */
    range_add(at, block, usable);
    place->block = block;
    place->size = size;
    place->key = key;
    pattern_write(block, size, key);
    atomic_fetch_add(&live, size);
}

static void place_allocate(struct place *place, int at, uint64_t *state)
{
    size_t size = random_size(state), alignment = random_alignment(state), count = below(state, 30) + 1;
    if (atomic_load(&live) + size > MOST_LIVE)
        size %= 1024;
    void *block = NULL;
    switch (below(state, 12)) {
    case 0:
        size = size / count * count;
        block = calloc(count, size / count);
        CHECK(block && is_zero(block, size));
        break;
    case 1:
        block = memalign(alignment, size);
        CHECK(size == 0 || is_aligned(block, alignment));
        break;
    case 2:
        size = size / alignment * alignment;
        block = aligned_alloc(alignment, size);
        CHECK(size == 0 || is_aligned(block, alignment));
        break;
    case 3:
        alignment = alignment < sizeof(void *) ? sizeof(void *) : alignment;
        CHECK(posix_memalign(&block, alignment, size) == 0 && (size == 0 || is_aligned(block, alignment)));
        break;
    case 4: block = reallocarray(NULL, size / count, count); size = size / count * count; break;
    case 5: block = realloc(NULL, size); break;
    default: block = malloc(size);
    }
    CHECK(block);
    place_fill(place, at, block, size, next_random(state));
}

static void place_check(const struct place *place)
{
    CHECK(pattern_is_there(place->block, place->size, place->size, place->key));
}

static void place_free(struct place *place, int at)
{
    place_check(place);
    range_remove(at);
    atomic_fetch_sub(&live, place->size);
    free(place->block);
    place->block = NULL;
}

static void place_resize(struct place *place, int at, uint64_t *state)
{
    size_t size = random_size(state), old = place->size;
    uint64_t key = place->key;
    if (below(state, 3) == 0)
        size = old + below(state, old / 4 + 64);
    if (size == 0 || atomic_load(&live) + size > MOST_LIVE)
        size = 1 + old / 2;
    place_check(place);
    range_remove(at);
    atomic_fetch_sub(&live, old);
    unsigned char *block = realloc(place->block, size);
    CHECK(block && pattern_is_there(block, old, old < size ? old : size, key));
    place_fill(place, at, block, size, next_random(state));
}

static void operation(uint64_t *state)
{
    int at = (int)below(state, PLACES);
    struct place *place = &places[at];
    if (atomic_flag_test_and_set(&place->taken))
        return;
    uint64_t kind = below(state, 10);
    if (!place->block)
        place_allocate(place, at, state);
    else if (kind < 6)
        place_free(place, at);
    else if (kind < 9)
        place_resize(place, at, state);
    else
        place_check(place);
    if (below(state, 3000) == 0 && has_function("malloc_trim"))
        malloc_trim(0);
    atomic_flag_clear(&place->taken);
}

static void *worker(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    for (int i = 0; i < OPERATIONS; i++)
        operation(&state);
    return NULL;
}

/* At the end some blocks stay for the next seed, so that no run begins as the last one did. */
static void free_most(int part)
{
    for (int at = 0; at < PLACES; at++)
        if (places[at].block && at % part)
            place_free(&places[at], at);
}

static void on_signal(int number)
{
    dprintf(2, "signal %d%s\n", number, circumstances);
    raise(number);
}

static void run_seed(uint64_t seed, int workers)
{
    snprintf(circumstances, sizeof circumstances, "; ALLOC_SEED=%llu", (unsigned long long)seed);
    pthread_t threads[WORKERS];
    /* Threads end and others take over what they had. */
    for (int generation = 0; generation < 3; generation++) {
        for (int i = 0; workers > 1 && i < workers; i++)
            threads[i] = started(worker, (void *)(uintptr_t)(seed * 64 + (unsigned)(generation * WORKERS + i) + 1));
        if (workers == 1)
            worker((void *)(uintptr_t)(seed * 64 + (unsigned)generation + 1));
        for (int i = 0; workers > 1 && i < workers; i++)
            joined(threads[i]);
    }
    free_most(7);
}

static void run_seeds(int workers, int fixed)
{
    const int numbers[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &(struct sigaction){.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, NULL);
    const char *only = getenv("ALLOC_SEED");
    if (only)
        run_seed(strtoull(only, NULL, 10), workers);
    for (int seed = 1; !only && seed <= fixed; seed++)
        run_seed((uint64_t)seed, workers);
    double end = seconds_now() + soak_seconds(0);
    for (uint64_t seed = (uint64_t)time(NULL); seconds_now() < end; seed++)
        run_seed(seed, workers);
    free_most(PLACES + 1);
}

static void one_thread(void)
{
    run_seeds(1, SANITIZED ? 6 : rounds(6, 12));
}

static void four_threads(void)
{
    run_seeds(WORKERS, SANITIZED ? 2 : rounds(2, 4));
}

const struct test CASES[] = {
    {"one_thread", one_thread},
    {"four_threads", four_threads},
    {NULL, NULL},
};
