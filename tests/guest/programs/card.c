/* card [STOPS]     default 1000
 *
 * Proves the simulated machine's interconnect cards. Between the markers, STOPS times: remote
 * traffic, stop all, read twice, run all; a stop is coherent when both readings agree and time has
 * passed since the one before.
 * Outside the markers: how long orders take, that reset zeroes, and the speed of the card's clock. */
#define _GNU_SOURCE
#include "cards.h"
#include "lines.h"
#include "numakit-mark.h"
#include "placement.h"
#include <time.h>

#define USAGE "usage: card [STOPS]"

enum {
    CONTROL = 0x3058,
    STATUS = 0x305c,
    ELAPSED = 0x3100,
    COUNTERS_END = 0x3690,
    RESET = 0,
    STOP = 1,
    RUN = 5,
    ORDERS = 50,
    TRAFFIC_LINES = 16,       /* for each stop */
    REMOTE_BYTES = 4 << 20,   /* more than the caches hold */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Gives an order that differs from the one before and waits for the status word to tell that it
 * was served; the time that took, in ms. */
static double order(const struct card *card, uint32_t value)
{
    uint32_t served = card->words[STATUS / 4] >> 8;
    uint32_t wanted = (served + 1) << 8 | value;
    double start = now();
    card->words[CONTROL / 4] = value;
    while (card->words[STATUS / 4] != wanted) {
        if (now() - start > 1)
            fail("order %u of node %ld was not served in 1 s: status word 0x%08x, expected 0x%08x",
                 value, card->node, card->words[STATUS / 4], wanted);
        usleep(100);
    }
    return (now() - start) * 1e3;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void time_orders(void)
{
    double waited[ORDERS];
    for (int i = 0; i < ORDERS; i++) {
        usleep(i * 3701 % 20000); /* at all phases of the poller */
        waited[i] = order(&cards[i / 2 % total], i % 2 ? RUN : STOP);
    }
    qsort(waited, ORDERS, sizeof *waited, ascending);
    printf("acknowledged_ms_median %.3f\n", waited[ORDERS / 2]);
    printf("acknowledged_ms_max %.3f\n", waited[ORDERS - 1]);
}

static void check_reset(const struct card *card)
{
    order(card, STOP);
    if (counter(card, ELAPSED) == 0)
        fail("the card of node %ld has counted no cycles", card->node);
    order(card, RESET);
    for (int offset = ELAPSED; offset < COUNTERS_END; offset += 8)
        if (counter(card, offset))
            fail("counter 0x%x of node %ld is %llu after a reset", offset, card->node,
                 (unsigned long long)counter(card, offset));
    order(card, RUN);
}

/* Cycles of the card's clock against 200 MHz of ours, while all run. */
static void check_clock(void)
{
    uint64_t before[MAX_CARDS];
    double start = now();
    for (int i = 0; i < total; i++)
        before[i] = counter(&cards[i], ELAPSED);
    sleep(1);
    double cycles = (now() - start) * 200e6;
    for (int i = 0; i < total; i++)
        printf("clock_ratio %d %.4f\n", i, (double)(counter(&cards[i], ELAPSED) - before[i]) / cycles);
}

/* All cards stand still: whether two readings agree and time has passed since the last ones. */
static bool coherent(void)
{
    bool good = true;
    for (int i = 0; i < total; i++) {
        struct card *card = &cards[i];
        uint64_t elapsed = counter(card, ELAPSED), received = counter(card, LINES_RECEIVED);
        good &= elapsed > card->elapsed && received >= card->received;
        card->elapsed = elapsed;
        card->received = received;
    }
    for (int i = 0; i < total; i++)
        good &= counter(&cards[i], ELAPSED) == cards[i].elapsed &&
                counter(&cards[i], LINES_RECEIVED) == cards[i].received;
    return good;
}

static void order_all(uint32_t value)
{
    for (int i = 0; i < total; i++)
        cards[i].words[CONTROL / 4] = value;
}

/* The first card's node fetches lines of the last card's node. */
static void check_coherence(long stops)
{
    long good = 0;
    bind_to_cpu(first_cpu_of_node((int)cards[0].node));
    char *remote = fresh_memory(REMOTE_BYTES);
    place_memory(remote, REMOTE_BYTES, MPOL_BIND, (int)cards[total - 1].node, 0);
    touch_pages(remote, REMOTE_BYTES);
    uint64_t before = counter(&cards[0], LINES_RECEIVED);
    NUMAKIT_MARK_BEGIN();
    for (long n = 0; n < stops; n++) {
        size_t at = n * TRAFFIC_LINES * LINE % REMOTE_BYTES;
        write_lines(remote + at, TRAFFIC_LINES * LINE, 1);
        order_all(STOP);
        good += coherent();
        order_all(RUN);
    }
    NUMAKIT_MARK_END();
    printf("coherent %ld of %ld\n", good, stops);
    if (total > 1) {
        printf("lines_expected %ld\n", stops * TRAFFIC_LINES);
        printf("lines_received %llu\n", (unsigned long long)(cards[0].received - before));
    }
    if (good != stops)
        fail("%ld of %ld stops were not coherent", stops - good, stops);
}

int main(int count, char **words)
{
    if (count > 2)
        bad_arguments(USAGE);
    long stops = count == 2 ? number("STOPS", words[1], 1, 10000000) : 1000;
    find_cards();
    for (int i = 0; i < total; i++)
        printf("card_node %d %ld\n", i, cards[i].node);
    time_orders();
    for (int i = 0; i < total; i++)
        check_reset(&cards[i]);
    check_clock();
    check_coherence(stops);
    return 0;
}
