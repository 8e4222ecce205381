/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "shares.h"
#include "nodes.h"
#include "os.h"

/* What a simulation adds to a member's time. */
#ifndef SHARES_COST
#define SHARES_COST(line, is_written) ((void)0)
#endif

enum {
    PARTS = 4,                     /* a chunk is the 2^-PARTS part of what is left */
    FINEST = 10,                   /* no chunk is less than the 2^-FINEST part of a share */
    ENDING = 4,                    /* what takes the 2^-ENDING part of the loop's time is not worth another node's help */
    TAG_BITS = 16, UNIT_BITS = 24, SAID_BITS = 9, SIZE_BITS = 8,
};
static const uint64_t PATIENCE = 100000000; /* ns to wait for the slowest of a chain of loops */

static uint64_t word_of(uint64_t tag, uint32_t begin, uint32_t end)
{
    return tag << 2 * UNIT_BITS | (uint64_t)begin << UNIT_BITS | end;
}

/* The size of a rest in a byte: small ones exactly, others to an eighth. */
static uint32_t size_of(uint32_t units)
{
    enum { STEPS = 3, STEP = 1 << STEPS };
    if (units < 2 * STEP)
        return units;
    uint32_t shift = 31 - (uint32_t)__builtin_clz(units) - STEPS;
    return (shift << STEPS) + (units >> shift);
}

/* The least units of this size. */
static uint32_t units_of(uint32_t size)
{
    enum { STEPS = 3, STEP = 1 << STEPS };
    if (size < 2 * STEP)
        return size;
    uint32_t shift = (size >> STEPS) - 1;
    return (STEP + size % STEP) << shift;
}

struct range share_of(const struct member *member, uint32_t number)
{
    uint32_t more = number < member->remainder, before = more ? number : member->remainder;
    struct range share = {.begin = number * member->quotient + before, .home = number};
    share.end = share.begin + member->quotient + more;
    /* The last unit is apart. */
    if (share.end == member->units && share.end > share.begin)
        share.end--;
    return share;
}

static uint32_t home_of(const struct member *member, uint32_t unit)
{
    uint32_t larger = (member->quotient + 1) * member->remainder;
    return unit < larger ? unit / (member->quotient + 1)
                         : member->remainder + (unit - larger) / member->quotient;
}

/* What is left in a word of this loop. */
static struct range left_in(const struct member *member, uint64_t word, uint32_t number)
{
    if (word >> 2 * UNIT_BITS != member->tag)
        return share_of(member, number);
    return (struct range){.begin = (uint32_t)(word >> UNIT_BITS) & MAX_UNITS, .end = (uint32_t)word & MAX_UNITS};
}

static uint32_t hint_tag(const struct member *member)
{
    return (uint32_t)(member->loop / RING << SAID_BITS);
}

/* What a hint says of a member whose word has this range: its size, and whether its owner is about to end. Who still works on
 * its own share has done so since the loop began, so that units tell times. */
static uint32_t said_of(const struct member *member, uint32_t number, struct range left)
{
    uint32_t rest = left.end - left.begin;
    struct range share = share_of(member, number);
    bool is_own = left.begin >= share.begin && left.begin < share.end;
    bool is_ending = is_own && (uint64_t)rest << ENDING < left.begin - share.begin;
    return size_of(rest) | (uint32_t)is_ending << SIZE_BITS;
}

static void say_left(struct member *member, struct range left)
{
    uint32_t said = said_of(member, member->number, left);
    if (said == member->published)
        return;
    member->published = said;
    SHARES_COST(member->hint, true);
    atomic_store_explicit(member->hint, hint_tag(member) | said, memory_order_relaxed);
}

void member_place(struct member *member, int node)
{
    struct shares *shares = member->shares;
    member->node = (int16_t)node;
    if (atomic_load_explicit(&shares->nodes[member->number], memory_order_relaxed) != node)
        atomic_store_explicit(&shares->nodes[member->number], (int16_t)node, memory_order_relaxed);
    if (shares->count && shares->settled[member->number] != node &&
        !atomic_load_explicit(&shares->has_moved, memory_order_relaxed))
        atomic_store_explicit(&shares->has_moved, true, memory_order_relaxed);
}

void member_join(struct member *member, struct shares *shares, uint32_t number, int node)
{
    *member = (struct member){.shares = shares, .number = number, .next = shares->sequence};
    member_met(member);
    member_place(member, node);
}

static uint64_t slowest(const struct member *member)
{
    const struct shares *shares = member->shares;
    uint64_t least = member->next - 1;
    for (uint32_t i = 0; i < shares->count; i++) {
        /* The member behind a line that says less may have joined later: it has left nothing of this region. */
        uint64_t left = atomic_load_explicit(&shares->lines[i]->finished, memory_order_acquire);
        least = i == member->number || left > least ? least : left;
    }
    return least < shares->sequence ? shares->sequence - 1 : least;
}

/* Whether the ring has room for this loop: all have left the one whose word it takes. */
static bool has_room(struct member *member, uint64_t loop)
{
    enum { SPINS = 256 };
    uint64_t since = 0;
    for (uint32_t spins = 0; member->known + RING < loop; spins++) {
        member->known = slowest(member);
        if (member->known + RING >= loop)
            break;
        if (spins < SPINS) {
            os_pause();
            continue;
        }
        uint64_t now = os_time(CLOCK_MONOTONIC);
        since = since ? since : now;
        if (now - since > PATIENCE)
            return false;
        os_yield();
    }
    return true;
}

void member_begin(struct member *member, uint32_t units, uint32_t least)
{
    const struct shares *shares = member->shares;
    uint64_t loop = member->next;
    member->loop = loop;
    member->tag = loop / RING & ((1 << TAG_BITS) - 1);
    member->units = units;
    member->quotient = units / shares->count;
    member->remainder = units % shares->count;
    member->least = least > member->quotient >> FINEST ? least : member->quotient >> FINEST;
    member->least += member->least == 0;
    member->word = &shares->lines[member->number]->words[loop % RING];
    member->hint = shares->hint_of[member->number] + loop % RING * shares->hint_step[member->number];
    member->home = member->number;
    struct range share = share_of(member, member->number);
    member->published = said_of(member, member->number, share);
    member->is_over = units == 0 || !has_room(member, loop);
    member->next = loop + 1;
}

void member_finish(struct member *member)
{
    member->is_over = true;
    SHARES_COST(member->word, true);
    atomic_store_explicit(&member->shares->lines[member->number]->finished, member->loop, memory_order_release);
}

static uint32_t chunk_of(const struct member *member, uint32_t left)
{
    uint32_t units = left >> PARTS;
    units = units < member->least ? member->least : units;
    return units < left ? units : left;
}

/* The last unit of the loop, if nobody has it yet. */
static bool take_last(struct member *member, struct range *range)
{
    _Atomic uint64_t *last = &member->shares->last[member->loop % RING];
    uint64_t taken = atomic_load_explicit(last, memory_order_relaxed);
    member->is_over = true;
    SHARES_COST(last, taken != member->loop);
    if (taken == member->loop ||
        !atomic_compare_exchange_strong_explicit(last, &taken, member->loop, memory_order_acq_rel, memory_order_relaxed))
        return false;
    *range = (struct range){.begin = member->units - 1, .end = member->units};
    range->home = home_of(member, range->begin);
    return true;
}

struct victim {
    uint32_t number, distance;
    uint32_t said;                 /* its hint */
    hint *hint;
    bool is_small;                 /* it has too little for one on another node */
    uint64_t score;
};

static uint32_t distance_to(const struct member *member, uint32_t number)
{
    int node = atomic_load_explicit(&member->shares->nodes[number], memory_order_relaxed);
    return node < 0 || node >= MAX_NODES ? LOCAL : node_distance(member->node, node);
}

/* What a hint says of a member; false if that is nothing. */
static bool read_hint(const struct member *member, uint32_t number, hint *hint, struct victim *victim)
{
    uint32_t said = atomic_load_explicit(hint, memory_order_relaxed), says = said & ((1 << SAID_BITS) - 1);
    if ((said ^ hint_tag(member)) >> SAID_BITS)
        says = said_of(member, number, share_of(member, number));
    uint32_t size = says & ((1 << SIZE_BITS) - 1);
    if (size == 0 || number == member->number)
        return false;
    *victim = (struct victim){.number = number, .said = said, .hint = hint};
    victim->distance = distance_to(member, number);
    if (says != size && victim->distance > LOCAL)
        return false;
    victim->is_small = victim->distance > LOCAL && units_of(size) < 2 * member->least;
    victim->score = ((uint64_t)units_of(size) << 16) / victim->distance;
    return true;
}

static bool is_better(const struct victim *one, const struct victim *other)
{
    return one->is_small != other->is_small ? other->is_small : one->score > other->score;
}

/* The member with the most left, by distance. Members behind this one come first, so that thieves differ. */
static bool find_victim(const struct member *member, struct victim *best)
{
    const struct shares *shares = member->shares;
    bool is_found = false;
    for (uint32_t g = 0; g < shares->groups; g++) {
        const struct group *group = &shares->group[g];
        hint *hints = group->hints[member->loop % RING];
        for (uint32_t i = 0; i < group->count; i++) {
            uint32_t at = (i + member->number + 1) % group->count;
            struct victim victim;
            if (i * sizeof(hint) % LINE == 0)
                SHARES_COST(&hints[i], false);
            if (!read_hint(member, shares->order[group->first + at], &hints[at], &victim) ||
                (is_found && !is_better(&victim, best)))
                continue;
            *best = victim;
            is_found = true;
        }
    }
    return is_found;
}

/* Unless somebody else has changed it meanwhile. */
static void correct_hint(const struct member *member, struct victim *victim, struct range left)
{
    uint32_t right = hint_tag(member) | said_of(member, victim->number, left);
    SHARES_COST(victim->hint, true);
    if (victim->said != right)
        atomic_compare_exchange_strong_explicit(victim->hint, &victim->said, right, memory_order_relaxed,
                                                memory_order_relaxed);
}

/* Half of what the victim has left, from the back; a quarter for one on another node, since members of the victim's own will
 * come for it too. False if it has too little by now, or somebody else was faster. */
static bool steal_from(struct member *member, struct victim *victim, struct range *range)
{
    _Atomic uint64_t *word = &member->shares->lines[victim->number]->words[member->loop % RING];
    SHARES_COST(word, true);
    uint64_t old = atomic_load_explicit(word, memory_order_acquire);
    struct range left = left_in(member, old, victim->number);
    uint32_t rest = left.end - left.begin, units = rest - rest / 2;
    bool is_far = victim->distance > LOCAL, is_small = !victim->is_small && rest < 2 * member->least;
    if (rest == 0 || (is_far && (is_small || said_of(member, victim->number, left) >> SIZE_BITS))) {
        correct_hint(member, victim, left);
        return false;
    }
    if (is_far)
        units = rest * 4 / 16;
    units = units < member->least ? member->least : units;
    units = units < rest ? units : rest;
    uint32_t from = left.end - units;
    if (!atomic_compare_exchange_strong_explicit(word, &old, word_of(member->tag, left.begin, from), memory_order_acq_rel,
                                                 memory_order_relaxed))
        return false;
    correct_hint(member, victim, (struct range){.begin = left.begin, .end = from});
    uint32_t now = chunk_of(member, units);
    member->home = home_of(member, from);
    *range = (struct range){.begin = from, .end = from + now, .home = member->home, .distance = victim->distance};
    /* Nobody else changes a word that is empty. */
    SHARES_COST(member->word, true);
    atomic_store_explicit(member->word, word_of(member->tag, from + now, left.end), memory_order_release);
    say_left(member, (struct range){.begin = from + now, .end = left.end});
    return true;
}

static bool take_elsewhere(struct member *member, struct range *range)
{
    struct victim victim;
    struct range share = share_of(member, member->number);
    say_left(member, (struct range){0});
    /* The share that has only the last unit. */
    if (share.begin == share.end && share.begin + 1 == member->units)
        return take_last(member, range);
    while (find_victim(member, &victim))
        if (steal_from(member, &victim, range))
            return true;
    return take_last(member, range);
}

bool member_take(struct member *member, struct range *range)
{
    if (member->is_over)
        return false;
    SHARES_COST(member->word, true);
    uint64_t old = atomic_load_explicit(member->word, memory_order_relaxed);
    for (;;) {
        struct range left = left_in(member, old, member->number);
        uint32_t rest = left.end - left.begin;
        if (rest == 0)
            return take_elsewhere(member, range);
        uint32_t units = chunk_of(member, rest);
        uint64_t taken = word_of(member->tag, left.begin + units, left.end);
        if (!atomic_compare_exchange_weak_explicit(member->word, &old, taken, memory_order_acq_rel, memory_order_relaxed))
            continue;
        say_left(member, (struct range){.begin = left.begin + units, .end = left.end});
        *range = (struct range){.begin = left.begin, .end = left.begin + units, .home = member->home};
        return true;
    }
}
