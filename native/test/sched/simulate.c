/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The scheduler's own code under a clock that is computed: the member with the least time takes its next chunk, and the chunk
 * takes as long as its iterations say. Each line of memory that the code touches costs what it would on the machine that is
 * simulated, and is one processor's at a time. So the results are counts: the same on every run and every machine.
 *
 * simulate          asserts the floors
 * simulate table    also prints what libgomp's schedules and a static one would give */
#define _GNU_SOURCE
#include "simulated.h"
#include "sched/nodes.h"
#include "sched/shares.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 512, PER_NODE = 8, LINES = 1 << 20 };

/* ns. A line that another CPU of the node changed, and one from another node at distance 20; further ones by distance. */
static const double NEAR_LINE = 40, FAR_LINE = 200, OWN_LINE = 5, ITERATION = 4000;

static struct {
    double time[MAX];
    unsigned members, running;
    struct { double free; unsigned owner; } lines[LINES];
} now;

static int node_of_member(unsigned member)
{
    return (int)(member / PER_NODE);
}

/* A line that another has costs its way, after all who asked for it before. */
void simulated_cost(const volatile void *address, bool is_written)
{
    size_t at = (size_t)address / LINE % LINES;
    unsigned me = now.running, owner = now.lines[at].owner;
    double cost = OWN_LINE;
    if (owner != me + 1)
        cost = owner && node_of_member(owner - 1) == node_of_member(me) ? NEAR_LINE : FAR_LINE;
    double from = now.time[me];
    if (is_written && now.lines[at].free > from)
        from = now.lines[at].free;
    now.time[me] = from + cost;
    if (is_written) {
        now.lines[at].free = now.time[me];
        now.lines[at].owner = me + 1;
    }
}

/* The same numbers everywhere. */
static uint64_t state;
static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

enum work { TRIANGULAR, DECREASING, PARETO, FRONT, UNIFORM, WORKS };
static const char *const NAMES[] = {"triangular", "decreasing", "Pareto", "front-loaded", "uniform"};

/* The sum of the work before each iteration, for a mean of ITERATION. */
static double *work_of(enum work work, unsigned iterations)
{
    double *sums = malloc((iterations + 1) * sizeof *sums), sum = 0;
    state = 88172645463325252;
    for (unsigned i = 0; i < iterations; i++) {
        double at = (i + 0.5) / iterations, one = 1;
        if (work == TRIANGULAR)
            one = at;
        else if (work == DECREASING)
            one = 1 - at;
        else if (work == PARETO)
            one = fmin(pow(1 - uniform(), -1 / 1.5), 1000);
        else if (work == FRONT)
            one = at < 1.0 / 10 ? 1 : 0.02;
        sums[i] = sum;
        sum += one;
    }
    sums[iterations] = sum;
    for (unsigned i = 0; i <= iterations; i++)
        sums[i] *= ITERATION * iterations / sum;
    return sums;
}

struct result {
    double efficiency, off_node;
    unsigned long chunks, steals;
};

static unsigned first_of(const bool *is_done)
{
    unsigned best = MAX;
    for (unsigned i = 0; i < now.members; i++)
        if (!is_done[i] && (best == MAX || now.time[i] < now.time[best]))
            best = i;
    return best;
}

static struct result result_of(const double *sums, unsigned iterations, double off, unsigned long chunks, unsigned long steals)
{
    double end = 0;
    for (unsigned i = 0; i < now.members; i++)
        end = now.time[i] > end ? now.time[i] : end;
    return (struct result){sums[iterations] / now.members / end, off / iterations, chunks, steals};
}

static void begin(unsigned members)
{
    memset(&now, 0, sizeof now);
    now.members = members;
}

static struct result adaptive(const double *sums, unsigned iterations, unsigned members)
{
    static struct member each[MAX];
    bool is_done[MAX] = {false};
    unsigned long chunks = 0, steals = 0;
    unsigned off = 0, left = members, done = 0;
    begin(members);
    struct shares *shares = shares_new(members);
    for (unsigned i = 0; i < members; i++)
        atomic_store(&shares->nodes[i], (int16_t)node_of_member(i));
    if (!shares || !shares_settle(shares, members))
        exit(1);
    for (unsigned i = 0; i < members; i++) {
        member_join(&each[i], shares, i, node_of_member(i));
        member_begin(&each[i], iterations, 1);
    }
    while (left) {
        struct range range;
        unsigned i = now.running = first_of(is_done);
        if (!member_take(&each[i], &range)) {
            is_done[i] = true;
            left--;
            continue;
        }
        chunks++;
        steals += range.distance > 0;
        done += range.end - range.begin;
        now.time[i] += sums[range.end] - sums[range.begin];
        if (node_of_member(range.home) != node_of_member(i))
            off += range.end - range.begin;
    }
    shares_free(shares);
    if (done != iterations) {
        printf("%u of %u iterations were run\n", done, iterations);
        exit(1);
    }
    return result_of(sums, iterations, off, chunks, steals);
}

static unsigned home_of(unsigned iteration, unsigned iterations, unsigned members)
{
    return (unsigned)((uint64_t)iteration * members / iterations);
}

/* One counter for all, as libgomp has it; `chunk` 0 is guided. */
static struct result shared(const double *sums, unsigned iterations, unsigned members, unsigned chunk)
{
    static _Alignas(LINE) char counter[LINE];
    unsigned next = 0, off = 0;
    unsigned long chunks = 0;
    bool is_done[MAX] = {false};
    begin(members);
    for (unsigned left = members; left;) {
        unsigned i = now.running = first_of(is_done), rest = iterations - next;
        simulated_cost(counter, true);
        unsigned units = chunk ? chunk : (rest + members - 1) / members;
        units = units > rest ? rest : units;
        if (units == 0) {
            is_done[i] = true;
            left--;
            continue;
        }
        for (unsigned at = next; at < next + units; at++)
            off += node_of_member(home_of(at, iterations, members)) != node_of_member(i);
        now.time[i] += sums[next + units] - sums[next];
        next += units;
        chunks++;
    }
    return result_of(sums, iterations, off, chunks, 0);
}

static struct result fixed(const double *sums, unsigned iterations, unsigned members)
{
    begin(members);
    for (unsigned i = 0; i < members; i++)
        now.time[i] = sums[(uint64_t)iterations * (i + 1) / members] - sums[(uint64_t)iterations * i / members];
    return result_of(sums, iterations, 0, members, 0);
}

static void show(const char *schedule, struct result result)
{
    printf("  %-12s %5.1f %% efficient  %5.1f %% off node  %lu chunks  %lu steals\n", schedule, 100 * result.efficiency,
           100 * result.off_node, result.chunks, result.steals);
}

static bool is_good(unsigned members, double efficiency, double off_node, bool is_table)
{
    bool good = true;
    for (enum work work = TRIANGULAR; work < WORKS; work++) {
        unsigned iterations = members * 4096;
        double *sums = work_of(work, iterations);
        struct result ours = adaptive(sums, iterations, members);
        printf("%u members, %s work\n", members, NAMES[work]);
        show("adaptive", ours);
        if (is_table) {
            show("static", fixed(sums, iterations, members));
            show("dynamic,16", shared(sums, iterations, members, 16));
            show("guided", shared(sums, iterations, members, 0));
        }
        free(sums);
        if (ours.efficiency < efficiency || ours.off_node > off_node) {
            printf("the floors are %.0f %% efficient and %.0f %% off node\n", 100 * efficiency, 100 * off_node);
            good = false;
        }
    }
    return good;
}

int main(int count, char **words)
{
    bool is_table = count > 1 && strcmp(words[1], "table") == 0;
    static char distances[MAX / PER_NODE * MAX / PER_NODE * 4];
    char *at = distances;
    for (int row = 0; row < MAX / PER_NODE; row++)
        for (int column = 0; column < MAX / PER_NODE; column++)
            at += sprintf(at, "%d%c", row == column ? 10 : 20,
                          column + 1 < MAX / PER_NODE ? ',' : row + 1 < MAX / PER_NODE ? ';' : 0);
    if (!nodes_pretend(distances))
        return 1;
    bool few = is_good(64, 0.95, 0.15, is_table), many = is_good(512, 0.85, 1, is_table);
    return few && many ? 0 : 1;
}
