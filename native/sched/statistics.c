/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "statistics.h"
#include "lines.h"
#include "nodes.h"
#include "os.h"
#include "settings.h"
#include "base/recorders.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DISTANCES = 256 };

static struct {
    _Atomic uint64_t loops, passed, chunks, iterations, off_node, steals[DISTANCES];
    /* Sums over loops, in ticks: of the member with the most, and of all members on average. */
    _Atomic uint64_t longest_share, longest_run, mean;
} all;

static void add(_Atomic uint64_t *sum, uint64_t value)
{
    atomic_fetch_add_explicit(sum, value, memory_order_relaxed);
}

struct timing *timing_new(uint32_t capacity)
{
    return os_allocate(capacity * sizeof(struct timing), 0);
}

void timing_free(struct timing *timing, uint32_t capacity)
{
    os_unmap(timing, capacity * sizeof(struct timing));
}

void tally_end(struct tally *tally, struct timing *timing, const struct member *member)
{
    if (!tally->since)
        return;
    uint64_t spent = ticks() - tally->since;
    add(&timing[tally->home].home[member->loop % TIMED], spent);
    add(&timing[member->number].busy[member->loop % TIMED], spent);
    tally->since = 0;
}

static bool is_off_node(const struct member *member, uint32_t home)
{
    int node = atomic_load_explicit(&member->shares->nodes[home], memory_order_relaxed);
    return node != member->node;
}

void tally_chunk(struct tally *tally, struct timing *timing, const struct member *member, const struct span *span,
                 const struct range *range)
{
    uint64_t iterations = iterations_in(span, range);
    tally_end(tally, timing, member);
    tally->chunks++;
    tally->iterations += iterations;
    tally->off_node += is_off_node(member, range->home) ? iterations : 0;
    if (range->distance)
        add(&all.steals[range->distance % DISTANCES], 1);
    tally->home = range->home;
    tally->since = ticks();
}

void tally_add(const struct tally *tally)
{
    add(&all.chunks, tally->chunks);
    add(&all.iterations, tally->iterations);
    add(&all.off_node, tally->off_node);
}

static void fold(struct timing *timing, uint32_t count, uint64_t loop)
{
    uint64_t share = 0, run = 0, sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t home = atomic_exchange_explicit(&timing[i].home[loop % TIMED], 0, memory_order_relaxed);
        uint64_t busy = atomic_exchange_explicit(&timing[i].busy[loop % TIMED], 0, memory_order_relaxed);
        share = home > share ? home : share;
        run = busy > run ? busy : run;
        sum += busy;
    }
    add(&all.longest_share, share);
    add(&all.longest_run, run);
    add(&all.mean, sum / count);
    add(&all.loops, 1);
}

void timing_fold(struct timing *timing, const struct shares *shares, uint64_t loop)
{
    /* All have left the loop before the ring's last one. */
    if (loop > shares->sequence + RING)
        fold(timing, shares->count, loop - RING - 1);
}

void timing_fold_rest(struct timing *timing, const struct shares *shares, uint64_t next)
{
    uint64_t first = next > shares->sequence + RING + 1 ? next - RING - 1 : shares->sequence;
    for (; first < next; first++)
        fold(timing, shares->count, first);
}

void statistics_passed(void)
{
    add(&all.passed, 1);
}

void statistics_begin_child(void)
{
    memset(&all, 0, sizeof all);
}

/* Appends to a text, as far as there is room. */
__attribute__((format(printf, 3, 4))) static void append(char *text, size_t room, const char *format, ...)
{
    size_t length = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + length, room - length, format, values);
    va_end(values);
}

/* How many, and how far from the shares of others. */
static void describe_steals(char *text, size_t room)
{
    unsigned long long sum = 0;
    for (int i = 0; i < DISTANCES; i++)
        sum += all.steals[i];
    append(text, room, "%llu steals", sum);
    const char *before = ": ";
    for (int i = 0; i < DISTANCES; i++) {
        unsigned long long steals = all.steals[i];
        if (steals == 0 || strlen(text) + 64 > room)
            continue;
        append(text, room, "%s%llu at distance %d", before, steals, i);
        before = ", ";
    }
}

__attribute__((destructor)) static void print_statistics(void)
{
    if (!settings()->has_statistics)
        return;
    unsigned long long loops = all.loops, passed = all.passed, chunks = all.chunks, iterations = all.iterations;
    int process = (int)os_process();
    line_print("process %d: %llu loops with shares, %llu left to libgomp", process, loops, passed);
    if (iterations == 0 || all.mean == 0)
        return;
    char steals[256] = "", label[512] = "";
    double off = 100.0 * (double)all.off_node / (double)iterations;
    double share = (double)all.longest_share / (double)all.mean, run = (double)all.longest_run / (double)all.mean;
    describe_steals(steals, sizeof steals);
    line_print("%llu iterations in %llu chunks, %.1f %% on their node, %.1f %% off it", iterations, chunks, 100.0 - off, off);
    line_print("%s", steals);
    line_print("imbalance %.2f of static shares, %.2f as run (the longest time of a member, by the mean)", share, run);
    append(label, sizeof label, "loops of %d: %.1f %% on their node, %.1f %% off it, imbalance %.2f of static shares, %.2f as run, %s",
           process, 100.0 - off, off, share, run, steals);
    struct refusal refusal;
    recorders_label(label, "", &refusal);
    if (refusal.error)
        line_print("no recording has this: %s %s", refusal.folder,
                   refusal.error == EPERM ? "belongs to another user, or others may write to it" : strerror(refusal.error));
}
