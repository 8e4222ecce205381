/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cards.h"

#include "flows.h"
#include "machine.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    WINDOW_BYTES = 0x4000,
    VENDOR_DEVICE = 0x0000,
    FIRST_CARD = 0x10a4,
    NEXT_CARD = 0x10a8,
    COUNTER_TOTAL = 0x3050,
    CONTROL = 0x3058,
    STATUS = 0x305c, /* the simulator's own: orders served << 8 | the last one */
    COUNTERS = 0x3100,
    COUNTERS_END = 0x3690,
    COUNTER_NAMES = 120,

    IDENTITY = 0x07001b47,
    NO_CARD = 0xfff,
    RESET = 0,
    STOP = 1,
    RUN = 5,

    WORDS = (COUNTERS_END - COUNTERS) / 8,
    POLL_NS = 5000000,
    NS_PER_CARD_CYCLE = 5,
};
#define COUNTER_BITS ((1ull << 48) - 1)

struct card {
    _Atomic uint32_t *window;
    int node;
    bool running;
    uint32_t served, control;
    uint64_t held[WORDS];  /* what the counters showed when the card began to run */
    uint64_t began[WORDS]; /* what the model had counted then */
};

static struct card cards[MAX_NODES];
static int count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void put(const struct card *card, uint32_t offset, uint32_t value)
{
    atomic_store_explicit(&card->window[offset / 4], value, memory_order_release);
}

/* All counters as the model has them now; word 0 is the elapsed cycles. */
static void count_now(const struct card *card, uint64_t *words)
{
    memset(words, 0, WORDS * sizeof *words);
    words[0] = now_ns() / NS_PER_CARD_CYCLE;
    flows_count(card->node, words);
}

static void show(struct card *card)
{
    uint64_t now[WORDS];
    count_now(card, now);
    for (uint32_t i = 0; i < WORDS; i++) {
        uint64_t value = (card->held[i] + now[i] - card->began[i]) & COUNTER_BITS;
        put(card, COUNTERS + 8 * i, (uint32_t)value);
        put(card, COUNTERS + 8 * i + 4, (uint32_t)(value >> 32));
    }
}

/* The counters stand still, at what they have counted. */
static void stop(struct card *card)
{
    if (!card->running)
        return;
    show(card);
    for (uint32_t i = 0; i < WORDS; i++) {
        uint64_t low = card->window[(COUNTERS + 8 * i) / 4], high = card->window[(COUNTERS + 8 * i) / 4 + 1];
        card->held[i] = high << 32 | low;
    }
    card->running = false;
}

static void run(struct card *card)
{
    if (card->running)
        return;
    count_now(card, card->began);
    card->running = true;
}

/* Zero, and stopped. The register reads as stopped then, so that a second reset is an order. */
static void reset(struct card *card)
{
    uint32_t order = RESET;
    card->running = false;
    memset(card->held, 0, sizeof card->held);
    for (uint32_t offset = COUNTERS; offset < COUNTERS_END; offset += 4)
        put(card, offset, 0);
    card->control = STOP;
    if (!atomic_compare_exchange_strong(&card->window[CONTROL / 4], &order, STOP))
        card->control = RESET;
}

static void serve(struct card *card)
{
    uint32_t order = atomic_load_explicit(&card->window[CONTROL / 4], memory_order_acquire);
    if (order == card->control)
        return;
    card->control = order;
    if (order == STOP)
        stop(card);
    else if (order == RUN)
        run(card);
    else if (order == RESET)
        reset(card);
    card->served++;
    put(card, STATUS, card->served << 8 | (order & 0xff));
}

void cards_serve(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        serve(&cards[i]);
    pthread_mutex_unlock(&lock);
}

void cards_refresh(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        if (cards[i].running)
            show(&cards[i]);
    pthread_mutex_unlock(&lock);
}

static void *poll_orders(void *unused)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    for (;;) {
        cards_serve();
        cards_refresh();
        nanosleep(&pause, NULL);
    }
    return unused;
}

/* Cards stand at positions 0, 1, 2 ...; each names the first one and the next. */
static void identify(struct card *card, int position, int total, uint64_t start)
{
    uint32_t next = position + 1 < total ? (uint32_t)position + 1 : NO_CARD;
    put(card, VENDOR_DEVICE, IDENTITY);
    put(card, FIRST_CARD, 0);
    put(card, NEXT_CARD, next);
    put(card, COUNTER_TOTAL, COUNTER_NAMES);
    put(card, CONTROL, RUN);
    put(card, STATUS, RUN);
    card->control = RUN;
    for (uint32_t i = 0; i < WORDS; i++)
        card->held[i] = start & COUNTER_BITS;
    run(card);
    show(card);
}

static bool map(struct card *card, const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return false;
    void *window = mmap(NULL, WINDOW_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    card->window = window;
    return window != MAP_FAILED;
}

bool cards_create(uint64_t start)
{
    for (int n = 0; n < machine.nodes; n++) {
        if (!machine.node[n].card[0])
            continue;
        cards[count].node = n;
        if (!map(&cards[count], machine.node[n].card)) {
            fprintf(stderr, "simulator: cannot map the card of node %d: %s\n", n, machine.node[n].card);
            return false;
        }
        count++;
    }
    for (int i = 0; i < count; i++)
        identify(&cards[i], i, count, start);
    pthread_t thread;
    return count == 0 || pthread_create(&thread, NULL, poll_orders, NULL) == 0;
}
