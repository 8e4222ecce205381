/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flows.h"

#include "model.h"

/* What crossed the card of one node, taken together over all nodes. */
struct flow {
    uint64_t read_sent, modify_sent, upgrade_sent, victim_sent, probe_sent;
    uint64_t read_received, modify_received, upgrade_received, victim_received, probe_received;
    uint64_t lines_sent, lines_received;       /* with data: responses and victims */
    uint64_t responses_sent, responses_received;
    uint64_t requests_out, requests_in;
    uint64_t wait_out, wait_in;                /* card cycles */
    uint64_t read_hit, store_hit, store_miss, rollout, invalidated;
    uint64_t bank[BANKS][7]; /* in the order of the registers of a tag bank */
};

/* The order of the registers of a tag bank. */
enum { ACCESSES, WRITE_HIT, READ_HIT, WRITE_WRITEBACK, READ_WRITEBACK, WRITE_MISS, READ_MISS };

struct row {
    uint16_t offset;
    uint16_t flow;
};

#define FLOW(field) (uint16_t)(__builtin_offsetof(struct flow, field) / sizeof(uint64_t))

/* Offset from the first counter; what is not here stays 0. */
static const struct row rows[] = {
    {0x050, FLOW(requests_out)},     {0x060, FLOW(wait_out)},
    {0x098, FLOW(responses_received)}, {0x120, FLOW(requests_in)},
    {0x130, FLOW(wait_in)},          {0x138, FLOW(responses_sent)},
    {0x210, FLOW(victim_received)},  {0x218, FLOW(read_received)},
    {0x220, FLOW(modify_received)},  {0x228, FLOW(upgrade_received)},
    {0x240, FLOW(probe_received)},   {0x258, FLOW(responses_received)},
    {0x260, FLOW(probe_sent)},       {0x268, FLOW(lines_received)},
    {0x278, FLOW(victim_sent)},      {0x280, FLOW(read_sent)},
    {0x288, FLOW(modify_sent)},      {0x290, FLOW(upgrade_sent)},
    {0x2b8, FLOW(responses_sent)},   {0x2c0, FLOW(probe_received)},
    {0x2c8, FLOW(lines_sent)},       {0x2d8, FLOW(read_hit)},
    {0x2e0, FLOW(store_hit)},        {0x2e8, FLOW(store_miss)},
    {0x2f0, FLOW(rollout)},          {0x2f8, FLOW(invalidated)},
};

enum { FIRST_BANK = 0x398, BANK_BYTES = 0x38 };

/* What the node's own CPUs sent out. */
static void sent(struct flow *flow, const struct counts *own, int node)
{
    for (int other = 0; other < machine.nodes; other++) {
        if (other == node)
            continue;
        flow->read_sent += own->reads[other];
        flow->modify_sent += own->modifies[other];
        flow->upgrade_sent += own->upgrades[other];
        flow->lines_received += own->fetches[other] + own->transfers[other];
        flow->responses_received += own->fetches[other] + own->transfers[other];
        flow->wait_out += own->wait[other] / CPU_CYCLES_PER_CARD_CYCLE;
    }
    flow->requests_out = flow->read_sent + flow->modify_sent + flow->upgrade_sent;
}

/* What the CPUs of another node did to this one. */
static void received(struct flow *flow, const struct counts *other, int node)
{
    flow->read_received += other->reads[node];
    flow->modify_received += other->modifies[node];
    flow->upgrade_received += other->upgrades[node];
    flow->lines_sent += other->fetches[node] + other->transfers[node];
    flow->responses_sent += other->fetches[node] + other->transfers[node];
    flow->wait_in += other->wait[node] / CPU_CYCLES_PER_CARD_CYCLE;
}

/* Messages whose ends both differ from who caused them. */
static void passed(struct flow *flow, const struct counts *counts, int node)
{
    flow->invalidated += counts->invalidations[node];
    for (int other = 0; other < machine.nodes; other++) {
        if (other == node)
            continue;
        flow->victim_sent += counts->writebacks[node][other];
        flow->victim_received += counts->writebacks[other][node];
        flow->probe_sent += counts->probes[node][other];
        flow->probe_received += counts->probes[other][node];
    }
}

/* The node's cache, as far as it holds lines of other nodes, is the card's cache. */
static void cached(struct flow *flow, const struct counts *own)
{
    flow->rollout = own->clean_rollouts;
    for (int b = 0; b < BANKS; b++) {
        uint64_t *bank = flow->bank[b];
        bank[READ_MISS] = own->cache[0][0][b];
        bank[READ_HIT] = own->cache[0][1][b];
        bank[WRITE_MISS] = own->cache[1][0][b];
        bank[WRITE_HIT] = own->cache[1][1][b];
        bank[READ_WRITEBACK] = own->rollouts[0][b];
        bank[WRITE_WRITEBACK] = own->rollouts[1][b];
        bank[ACCESSES] = bank[READ_MISS] + bank[READ_HIT] + bank[WRITE_MISS] + bank[WRITE_HIT];
        flow->read_hit += bank[READ_HIT];
        flow->store_hit += bank[WRITE_HIT];
        flow->store_miss += bank[WRITE_MISS];
        flow->rollout += bank[READ_WRITEBACK] + bank[WRITE_WRITEBACK];
    }
}

void flows_count(int node, uint64_t *words)
{
    struct flow flow = {0};
    for (int n = 0; n < machine.nodes; n++) {
        struct counts counts;
        model_sum(n, &counts);
        if (n == node) {
            sent(&flow, &counts, node);
            cached(&flow, &counts);
        } else {
            received(&flow, &counts, node);
        }
        passed(&flow, &counts, node);
    }
    flow.lines_received += flow.victim_received;
    flow.lines_sent += flow.victim_sent;
    const uint64_t *all = (const uint64_t *)&flow;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        words[rows[i].offset / 8] = all[rows[i].flow];
    for (int b = 0; b < BANKS; b++)
        for (int i = 0; i < 7; i++)
            words[(FIRST_BANK + b * BANK_BYTES) / 8 + i] = flow.bank[b][i];
}
