/* The simulated machine's interconnect cards: PCI functions 1af4:1110, laid out as NumaConnect2
 * cards. A card's counters grow while it runs, as it does from the start. */
#ifndef CARDS_H
#define CARDS_H

#include "arguments.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEVICES "/sys/bus/pci/devices"

enum {
    WINDOW = 0x4000,
    IDENTITY = 0x07001b47,
    FIRST_CARD = 0x10a4,
    NEXT_CARD = 0x10a8,
    NO_CARD = 0xfff,
    MAX_CARDS = 8,
    RESPONSES_RECEIVED = 0x3358, /* lines that the node's CPUs got from other nodes */
    LINES_RECEIVED = 0x3368,     /* and those that other nodes wrote back to its memory */
};

struct card {
    volatile uint32_t *words;
    long node;
    uint64_t elapsed, received; /* at the latest stop */
};

static struct card cards[MAX_CARDS];
static int total;

/* As the real card wants it: 32 bits at a time. */
static inline uint64_t counter(const struct card *card, int offset)
{
    uint32_t low = card->words[offset / 4];
    return (uint64_t)card->words[offset / 4 + 1] << 32 | low;
}

static inline long attribute(const char *device, const char *name)
{
    char path[512];
    long value = -1;
    snprintf(path, sizeof path, DEVICES "/%s/%s", device, name);
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%li", &value) != 1)
        value = -1;
    if (file)
        fclose(file);
    return value;
}

static inline void enable(const char *device)
{
    char path[512];
    snprintf(path, sizeof path, DEVICES "/%s/enable", device);
    FILE *file = fopen(path, "w");
    if (!file || fputs("1", file) < 0 || fclose(file))
        fail("cannot enable %s: %s", device, strerror(errno));
}

static inline void add_card(const char *device)
{
    char path[512];
    snprintf(path, sizeof path, DEVICES "/%s/resource2", device);
    enable(device);
    int file = open(path, O_RDWR);
    void *window = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || window == MAP_FAILED)
        fail("cannot map %s: %s", path, strerror(errno));
    close(file);
    struct card *card = &cards[total];
    card->words = window;
    card->node = attribute(device, "numa_node");
    if (card->words[0] != IDENTITY)
        fail("%s is no card: word 0 is 0x%08x", device, card->words[0]);
    uint32_t first = card->words[FIRST_CARD / 4] >> 4 & 0xfff;
    if (first != 0)
        fail("%s names %u as the first card, not 0", device, first);
    total++;
}

/* Cards come in the order of their buses; each names the next one. */
static inline void find_cards(void)
{
    struct dirent **devices;
    int count = scandir(DEVICES, &devices, NULL, alphasort);
    for (int i = 0; i < count && total < MAX_CARDS; i++)
        if (attribute(devices[i]->d_name, "vendor") == 0x1af4 &&
            attribute(devices[i]->d_name, "device") == 0x1110)
            add_card(devices[i]->d_name);
    if (total == 0)
        fail("no interconnect card: no PCI function 1af4:1110 below " DEVICES);
    for (int i = 0; i < total; i++) {
        uint32_t next = cards[i].words[NEXT_CARD / 4] & 0xfff;
        if (next != (uint32_t)(i + 1 < total ? i + 1 : NO_CARD))
            fail("card %d of %d names 0x%x as the next one", i, total, next);
    }
}

#endif
