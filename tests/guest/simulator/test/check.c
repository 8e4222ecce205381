/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Checks of the model and the cards without QEMU: `check MACHINEFILE`, made by the caller with
 * nodes 0 to 2 of 16 MiB, CPUs 0 and 1 on node 0, 2 on node 1, 3 on node 2, cards on all.
 * One line a check; exit status 1 when one fails. */
#include "../cards.h"
#include "../flows.h"
#include "../model.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LINES_A_NODE = (16 << 20) >> LINE_SHIFT,
    NODE_CACHE_LINES = NODE_BYTES >> LINE_SHIFT,
    CONTROL = 0x3058,
    STATUS = 0x305c,
    COUNTERS = 0x3100,
    READ_SENT = 0x280,
};
#define START 0xfffffffffff0ull

static int failed;

static void check(const char *what, uint64_t seen, uint64_t wanted)
{
    if (seen == wanted) {
        printf("ok %s\n", what);
    } else {
        printf("FAILED %s: %llu, not %llu\n", what, (unsigned long long)seen, (unsigned long long)wanted);
        failed = 1;
    }
}

static void clear(void)
{
    model_empty();
    for (int c = 0; c < MAX_CPUS; c++)
        memset(&model_cpu[c].counts, 0, sizeof model_cpu[c].counts);
}

static void access_line(int cpu, uint32_t line, bool store)
{
    model_access(&model_cpu[cpu], line, store);
}

static void one_reader(void)
{
    clear();
    const uint32_t near = 5, far = LINES_A_NODE + 5;
    access_line(0, near, false);
    access_line(0, near, false);
    access_line(0, far, false);
    access_line(1, far, false);
    const struct counts *first = &model_cpu[0].counts, *sibling = &model_cpu[1].counts;
    check("a line is fetched once", first->fetches[0], 1);
    check("a far line comes from its home", first->fetches[1], 1);
    check("a sibling finds it in the node's cache", sibling->fetches[1], 0);
    check("that is a hit of the card's cache", sibling->cache[0][1][far % BANKS], 1);
    access_line(0, near, true);
    check("a line that nobody else has needs no upgrade", first->upgrades[0] + first->modifies[0], 0);
}

static void one_writer(void)
{
    clear();
    const uint32_t line = LINES_A_NODE + 7; /* home is node 1 */
    access_line(0, line, true);
    check("a store miss is a read-modify", model_cpu[0].counts.modifies[1], 1);
    access_line(3, line, false);
    check("a dirty line comes from the cache that has it", model_cpu[3].counts.transfers[0], 1);
    check("and not from memory", model_cpu[3].counts.fetches[1], 0);
    check("it is written home", model_cpu[3].counts.writebacks[0][1], 1);
    check("home asks the owner", model_cpu[3].counts.probes[1][0], 1);
    access_line(3, line, true);
    check("a shared line is upgraded", model_cpu[3].counts.upgrades[1], 1);
    check("the other copy is taken away", model_cpu[3].counts.invalidations[0], 1);
    access_line(0, line, false);
    check("so the first writer must fetch it again", model_cpu[0].counts.transfers[2], 1);
}

static void sharing_in_a_node(void)
{
    clear();
    access_line(0, 9, true);
    access_line(1, 9, true);
    access_line(0, 9, true);
    uint64_t crossed = 0;
    for (int c = 0; c < 2; c++)
        for (int n = 1; n < machine.nodes; n++)
            crossed += model_cpu[c].counts.fetches[n] + model_cpu[c].counts.transfers[n];
    check("writers of one node cause no traffic between nodes", crossed, 0);
    check("the line changes hands in the node", model_cpu[0].counts.transfers[0] + model_cpu[1].counts.transfers[0], 2);
}

static void capacity(void)
{
    clear();
    const uint32_t lines = 4 * NODE_CACHE_LINES;
    for (uint32_t i = 0; i < lines; i++)
        access_line(2, 2 * LINES_A_NODE + i, true);
    const struct counts *counts = &model_cpu[2].counts;
    check("a stream misses on every line", counts->modifies[2], lines);
    check("what does not fit is written back", counts->writebacks[1][2], lines - NODE_CACHE_LINES);
    for (uint32_t i = 0; i < lines; i++)
        access_line(2, 2 * LINES_A_NODE + i, false);
    check("a second round misses again", counts->reads[2], lines);
    check("all dirty lines are home then", counts->writebacks[1][2], lines);
}

static void addresses(void)
{
    check("the first page of the first node", (uint64_t)machine_page(0), 0);
    check("reported addresses of the second node begin at twice its start", (uint64_t)machine_page(32 << 20), 4096);
    check("between them is no memory", (uint64_t)machine_page(16 << 20), (uint64_t)-1);
    check("nor behind them", (uint64_t)machine_page(3ull << 30), (uint64_t)-1);
    check("home of the last line", (uint64_t)machine_home(3 * LINES_A_NODE - 1), 2);
}

/* Everything sent is received, whatever the traffic. */
static void conservation(void)
{
    static const struct {
        const char *what;
        int sent, received;
    } pairs[] = {{"reads", 0x280, 0x218},    {"read-modifies", 0x288, 0x220}, {"upgrades", 0x290, 0x228},
                 {"victims", 0x278, 0x210},  {"lines", 0x2c8, 0x268},         {"responses", 0x2b8, 0x258},
                 {"probe answers", 0x2c0, 0x260}};
    uint64_t total[0x590 / 8] = {0};
    uint32_t random = 1;
    clear();
    for (int i = 0; i < 2000000; i++) {
        random = random * 1664525 + 1013904223;
        access_line((random >> 4) % 4, (random >> 8) % (3 * LINES_A_NODE) & ~0x30u, random >> 31);
    }
    for (int n = 0; n < machine.nodes; n++) {
        uint64_t words[0x590 / 8] = {0};
        flows_count(n, words);
        for (int i = 0; i < 0x590 / 8; i++)
            total[i] += words[i];
    }
    for (unsigned i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char what[64];
        snprintf(what, sizeof what, "all %s that are sent are received", pairs[i].what);
        check(what, total[pairs[i].received / 8], total[pairs[i].sent / 8]);
        snprintf(what, sizeof what, "there are %s", pairs[i].what);
        check(what, total[pairs[i].sent / 8] > 0, true);
    }
}

static uint64_t counter(volatile uint32_t *window, int offset)
{
    return (uint64_t)window[(COUNTERS + offset) / 4 + 1] << 32 | window[(COUNTERS + offset) / 4];
}

static void order(volatile uint32_t *window, uint32_t value)
{
    window[CONTROL / 4] = value;
    cards_serve();
}

static void read_lines(int cpu, uint32_t first, int count)
{
    for (int i = 0; i < count; i++)
        access_line(cpu, first + i, false);
}

static void card_of_node_0(void)
{
    int file = open(machine.node[0].card, O_RDWR);
    volatile uint32_t *window = mmap(NULL, 0x4000, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    clear();
    check("the card says what it is", window[0], 0x07001b47);
    check("its info block names the next card", window[0x10a8 / 4] & 0xfff, 1);
    order(window, 1);
    check("counters begin where they were told to", counter(window, READ_SENT), START);
    order(window, 5);
    read_lines(0, LINES_A_NODE, 100);
    order(window, 1);
    check("counters wrap at 48 bits", counter(window, READ_SENT), 100 - 0x10);
    read_lines(0, LINES_A_NODE + 1000, 50);
    cards_refresh();
    check("a stopped card counts nothing", counter(window, READ_SENT), 100 - 0x10);
    order(window, 5);
    read_lines(0, LINES_A_NODE + 2000, 10);
    order(window, 1);
    check("it goes on where it stood", counter(window, READ_SENT), 110 - 0x10);
    uint64_t elapsed = counter(window, 0);
    cards_refresh();
    check("time stands still as well", counter(window, 0), elapsed);
    uint32_t served = window[STATUS / 4] >> 8;
    order(window, 0);
    check("a reset clears all", counter(window, READ_SENT) + counter(window, 0), 0);
    check("the status says which order was the last", window[STATUS / 4] & 0xff, 0);
    order(window, 0);
    check("every reset is an order", window[STATUS / 4] >> 8, served + 2);
    order(window, 5);
    check("the card runs again", window[STATUS / 4] & 0xff, 5);
}

int main(int words, char **word)
{
    if (words != 2 || !machine_read(word[1]) || !model_create() || !cards_create(START))
        return 2;
    one_reader();
    one_writer();
    sharing_in_a_node();
    capacity();
    addresses();
    conservation();
    card_of_node_0();
    return failed;
}
