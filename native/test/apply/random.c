/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random sequences of operations by several threads, compared with a model of what is allocated: blocks keep their content, have
 * their alignment, and do not overlap, since each byte of a block is checked. */
#define _GNU_SOURCE
#include "work.h"
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { PLACES = 256, THREADS = 4, OPERATIONS = 6000 };

static struct place {
    atomic_flag taken;
    unsigned char *block;
    size_t size;
    unsigned char key;
} places[PLACES];

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Sizes of three sites: small blocks, large ones, and what is between. */
static size_t random_size(uint64_t *state)
{
    uint64_t kind = next_random(state) % 10;
    if (kind < 6)
        return SMALL_BLOCK - 30 + next_random(state) % 60;
    return kind < 8 ? next_random(state) % 40000 : 100000 + next_random(state) % 8 * 50000;
}

static __attribute__((noinline)) void *random_malloc(size_t size)
{
    void *volatile block = malloc(size);
    return block;
}

static __attribute__((noinline)) void *random_calloc(size_t size)
{
    void *volatile block = calloc(1, size);
    return block;
}

static void fill(struct place *place, void *block, size_t size, unsigned char key)
{
    CHECK(block && malloc_usable_size(block) >= size && (uintptr_t)block % 16 == 0);
    place->block = block;
    place->size = size;
    place->key = key;
    memset(block, key, size);
}

static void check(const struct place *place, size_t size)
{
    for (size_t i = 0; i < size; i++)
        CHECK(place->block[i] == place->key);
}

static void allocate(struct place *place, uint64_t *state)
{
    size_t size = random_size(state), alignment = (size_t)16 << next_random(state) % 9;
    void *block = NULL;
    switch (next_random(state) % 4) {
    case 0:
        block = random_calloc(size);
        for (size_t i = 0; i < size; i++)
            CHECK(((char *)block)[i] == 0);
        break;
    case 1:
        CHECK(posix_memalign(&block, alignment, size) == 0 && (uintptr_t)block % alignment == 0);
        break;
    default: block = random_malloc(size);
    }
    fill(place, block, size, (unsigned char)next_random(state));
}

static void resize(struct place *place, uint64_t *state)
{
    size_t size = random_size(state) + 1, old = place->size;
    place->block = realloc(place->block, size);
    CHECK(place->block);
    check(place, old < size ? old : size);
    fill(place, place->block, size, (unsigned char)next_random(state));
}

static void *operate(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int i = 0; i < OPERATIONS; i++) {
        struct place *place = &places[next_random(&state) % PLACES];
        if (atomic_flag_test_and_set(&place->taken))
            continue;
        if (place->block)
            check(place, place->size);
        if (!place->block) {
            allocate(place, &state);
        } else if (next_random(&state) % 3) {
            free(place->block);
            place->block = NULL;
        } else {
            resize(place, &state);
        }
        atomic_flag_clear(&place->taken);
    }
    return NULL;
}

void random_operations(void)
{
    pthread_t threads[THREADS];
    if (getenv("SPY")) {
        free(random_malloc(SMALL_BLOCK));
        free(random_calloc(LARGE));
        return;
    }
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, operate, (void *)(uintptr_t)(round * THREADS + i + 1)) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
    }
}
