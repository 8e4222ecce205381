/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Long runs whose memory stays in proportion: at most twice what was live at once, and what is kept by default, 32 MiB of small
 * and of large blocks. */
#include "cases.h"

enum { WORKERS = 3, PLACES = 4096, SMALL_PLACES = 32768 };
static double end;

/* What is live, and the most that was. */
static atomic_size_t live, most_live;

/* Until the time is over, and on a busy machine until enough was live. */
static bool goes_on(void)
{
    return seconds_now() < end || atomic_load(&most_live) <= 17 * MIB;
}

static void *taken(size_t size)
{
    size_t *block = malloc(size + sizeof size);
    CHECK(block);
    *block = size;
    for (size_t at = sizeof size; at < size; at += 4096)
        ((char *)block)[at] = 1;
    size_t now = atomic_fetch_add(&live, size) + size, most = atomic_load(&most_live);
    while (now > most && !atomic_compare_exchange_weak(&most_live, &most, now))
        continue;
    return block;
}

static void given_back(void *block)
{
    if (!block)
        return;
    atomic_fetch_sub(&live, *(size_t *)block);
    free(block);
}

static void is_in_proportion(void)
{
    size_t peak = kib_of_process("VmHWM:"), most = atomic_load(&most_live) / KIB;
    printf("peak %zu MiB for %zu MiB live\n", peak / 1024, most / 1024);
    fflush(stdout);
    CHECK(most > 16 * 1024 && peak <= 2 * most + 64 * 1024);
}

/* The same number of bytes of each power of two between both. */
static size_t between(uint64_t *state, uint64_t least, uint64_t most)
{
    uint64_t powers = 0, weight;
    while (least << powers < most)
        powers++;
    /* Small sizes more often: a size is as frequent as it is small. */
    weight = below(state, (uint64_t)1 << powers) + 1;
    uint64_t power = 0;
    while (weight >> (power + 1))
        power++;
    size_t size = least << (powers - 1 - (power < powers ? power : powers - 1));
    return size + below(state, size);
}

static void *_Atomic places[SMALL_PLACES];

static void *exchange_mixed(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    while (goes_on())
        for (int i = 0; i < 500; i++)
            given_back(atomic_exchange(&places[below(&state, SMALL_PLACES)], taken(between(&state, 32, 2 * MIB))));
    return NULL;
}

static void run_workers(void *(*run)(void *), double seconds)
{
    pthread_t threads[WORKERS];
    end = seconds_now() + soak_seconds(seconds);
    for (uintptr_t i = 0; i < WORKERS; i++)
        threads[i] = started(run, (void *)(i + 1));
    for (int i = 0; i < WORKERS; i++)
        joined(threads[i]);
    is_in_proportion();
}

static void sizes_mixed(void)
{
    run_workers(exchange_mixed, 2.5);
}

/* A program that goes from one size to another, and keeps a few blocks of each. */
static void phases(void)
{
    enum { BLOCKS = 400000, KEPT = 64 };
    static void *blocks[BLOCKS];
    uint64_t state = 3;
    end = seconds_now() + soak_seconds(2);
    for (size_t size = 40; goes_on(); size = size * 3 / 2 > 100000 ? 24 + size % 91 : size * 3 / 2) {
        size_t count = 40 * MIB / size < BLOCKS ? 40 * MIB / size : BLOCKS;
        for (size_t i = 0; i < count; i++) {
            given_back(i < BLOCKS && blocks[i] ? blocks[i] : NULL);
            blocks[i] = taken(size - 8);
        }
        for (size_t i = 0; i < BLOCKS; i++)
            if (blocks[i] && below(&state, KEPT)) {
                given_back(blocks[i]);
                blocks[i] = NULL;
            }
    }
    is_in_proportion();
}

/* One thread allocates what the others free, up to a limit of what is under way. */
static void *produce_or_free(void *number)
{
    uint64_t state = (uint64_t)(uintptr_t)number;
    while (goes_on())
        for (int i = 0; i < 200; i++) {
            uint64_t at = below(&state, PLACES);
            if (number == (void *)1)
                given_back(atomic_exchange(&places[at], taken(between(&state, 4096, MIB))));
            else
                given_back(atomic_exchange(&places[at], NULL));
        }
    return NULL;
}

static void handed_over(void)
{
    /* The state at its largest: all places are taken. */
    uint64_t state = 9;
    for (int i = 0; i < PLACES; i++)
        places[i] = taken(between(&state, 4096, MIB));
    run_workers(produce_or_free, 2.5);
}

/* Segments that grow, as those of a mesh that is refined. */
static void *grow_segments(void *seed)
{
    enum { SEGMENTS = 12 };
    void *segments[SEGMENTS] = {NULL};
    uint64_t state = (uint64_t)(uintptr_t)seed;
    while (goes_on()) {
        void **segment = &segments[below(&state, SEGMENTS)];
        size_t size = *segment ? *(size_t *)*segment : 0;
        if (size && size < 8 * MIB && below(&state, 3)) {
            size_t more = size * 3 / 10;
            *segment = realloc(*segment, size + more + sizeof size);
            CHECK(*segment && *(size_t *)*segment == size);
            atomic_fetch_add(&live, more);
            *(size_t *)*segment = size + more;
            memset((char *)*segment + size, 1, more);
        } else {
            given_back(*segment);
            *segment = taken(between(&state, 64 * KIB, 8 * MIB));
        }
    }
    for (int i = 0; i < SEGMENTS; i++)
        given_back(segments[i]);
    return NULL;
}

static void segments_grow(void)
{
    run_workers(grow_segments, 2);
}

/* Threads that come and go, each with blocks that outlive it. */
static void *short_life(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed | 1;
    for (int i = 0; i < 300; i++)
        given_back(atomic_exchange(&places[below(&state, PLACES)], taken(between(&state, 64, 256 * KIB))));
    return NULL;
}

static void threads_come_and_go(void)
{
    pthread_t threads[WORKERS];
    uint64_t state = 11;
    for (int i = 0; i < PLACES; i++)
        places[i] = taken(between(&state, 4096, 64 * KIB));
    end = seconds_now() + soak_seconds(1);
    for (uintptr_t round = 1; goes_on(); round++) {
        for (uintptr_t i = 0; i < WORKERS; i++)
            threads[i] = started(short_life, (void *)(round * 1000 + i));
        for (int i = 0; i < WORKERS; i++)
            joined(threads[i]);
    }
    is_in_proportion();
}

const struct test CASES[] = {
    {"sizes_mixed", sizes_mixed},
    {"phases", phases},
    {"handed_over", handed_over},
    {"segments_grow", segments_grow},
    {"threads_come_and_go", threads_come_and_go},
    {NULL, NULL},
};
