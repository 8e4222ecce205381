// A bounded queue between a thread that allocates and one that frees. Batches keep the cost of the lock small.

#pragma once
#include "work.h"

#define RING 65536

struct ring {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    // At most this many items and bytes wait, but always one may.
    size_t items_limit, bytes_limit;
    // Nothing is taken while fewer bytes wait; the limit must be larger by what is put at once.
    size_t bytes_least;
    size_t first, count, bytes, most_bytes;
    int waiting;
    struct item {
        void *block;
        size_t size;
    } items[RING];
};

#define RING_OF(items, bytes, least) \
    {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, items, bytes, least, 0, 0, 0, 0, 0, {{0, 0}}}

static inline void ring_wait(struct ring *ring)
{
    ring->waiting++;
    pthread_cond_wait(&ring->changed, &ring->lock);
    ring->waiting--;
}

static inline void ring_put(struct ring *ring, const struct item *items, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += items[i].size;
    pthread_mutex_lock(&ring->lock);
    while (ring->count && (ring->count + count > ring->items_limit || ring->bytes + bytes > ring->bytes_limit))
        ring_wait(ring);
    for (size_t i = 0; i < count; i++)
        ring->items[(ring->first + ring->count + i) % RING] = items[i];
    ring->count += count;
    ring->bytes += bytes;
    if (ring->bytes > ring->most_bytes)
        ring->most_bytes = ring->bytes;
    if (ring->waiting)
        pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

// Takes exactly count items.
static inline void ring_take(struct ring *ring, struct item *items, size_t count)
{
    pthread_mutex_lock(&ring->lock);
    while (ring->count < count || ring->bytes < ring->bytes_least)
        ring_wait(ring);
    for (size_t i = 0; i < count; i++) {
        items[i] = ring->items[(ring->first + i) % RING];
        ring->bytes -= items[i].size;
    }
    ring->first = (ring->first + count) % RING;
    ring->count -= count;
    if (ring->waiting)
        pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

// The rest may be taken.
static inline void ring_end(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->bytes_least = 0;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}
