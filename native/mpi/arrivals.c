/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "arrivals.h"
#include "os.h"
#include "tally.h"
#include <stddef.h>

/* An arrival is one word: when, and of which call, since another rank may be many calls ahead. */
enum {
    BATCH = 16,
    OPERATION_BITS = 6,
    NUMBER_BITS = 12,
    TIME_BITS = 64 - OPERATION_BITS - NUMBER_BITS,
    READ_AT_ONCE = 4,       /* rings of other ranks, on average: each is a few lines of another CPU's cache */
    MANY = 64,              /* batches, after which fewer are read */
    LESS = 4,               /* by this factor */
    LONG_NS = 100000,       /* a batch that took so long for each other rank is read: that costs it 1 % at most */
};
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)

static uint64_t tag_of(uint64_t number, unsigned operation)
{
    return (number << OPERATION_BITS | operation) << TIME_BITS;
}

/* Takes memory for the rings of all ranks. The first rank that comes does it; the others find it. */
static word *take_segment(struct communicator *communicator)
{
    uint64_t words = (uint64_t)communicator->size * RING, key = communicator->key;
    struct mpi_file *file = tally_file;
    for (uint64_t try = 0; try < 64; try++) {
        struct mpi_segment *segment = &file->segments[(key + try) % SEGMENTS];
        uint64_t owner = 0;
        if (atomic_compare_exchange_strong(&segment->key, &owner, key)) {
            uint64_t at = atomic_fetch_add(&file->header.arena_used, words);
            bool has_room = at < ARENA_WORDS && words <= ARENA_WORDS - at &&
                            tally_reserve(&file->arena[at], words * sizeof(word));
            atomic_store_explicit(&segment->place, has_room ? at + 1 : UINT64_MAX, memory_order_release);
            owner = key;
        }
        if (owner == key) {
            uint64_t place = atomic_load_explicit(&segment->place, memory_order_acquire);
            if (place == 0)
                return NULL;
            if (place - 1 < ARENA_WORDS && words <= ARENA_WORDS - (place - 1))
                return &file->arena[place - 1];
            break;
        }
    }
    set(&tally_own->communicators[communicator->place].reason, NO_ROOM);
    return NULL;
}

/* Whether a rank's arrival at this call is known; then how long after `begin`, which may be negative. */
static bool read_arrival(struct communicator *communicator, int rank, uint64_t number, const struct past *call,
                         int64_t *after)
{
    uint64_t word = value_of(&communicator->arrivals[(uint64_t)rank * RING + number % RING]);
    uint64_t moved = (word - call->begin) << (64 - TIME_BITS);
    *after = (int64_t)moved >> (64 - TIME_BITS);
    return (word ^ tag_of(number, call->operation)) >> TIME_BITS == 0;
}

enum waiting { FOR_ALL, FOR_ROOT, ROOT_FOR_ALL, FOR_EARLIER };

static enum waiting waiting_of(unsigned operation)
{
    switch (operation) {
    case OP_Bcast:
    case OP_Scatter:
    case OP_Scatterv:
        return FOR_ROOT;
    case OP_Reduce:
    case OP_Gather:
    case OP_Gatherv:
        return ROOT_FOR_ALL;
    case OP_Scan:
    case OP_Exscan:
        return FOR_EARLIER;
    default:
        return FOR_ALL;
    }
}

/* The rank that this one waited for, and how long; -1 if an arrival is not known. */
static int last_of(struct communicator *communicator, uint64_t number, const struct past *call, int64_t *waited)
{
    int first = 0, end = communicator->size, last = communicator->rank;
    *waited = 0;
    switch (waiting_of(call->operation)) {
    case FOR_ROOT:
        if (call->root < 0 || call->root >= communicator->size)
            return -1;
        first = call->root;
        end = call->root + 1;
        break;
    case ROOT_FOR_ALL:
        end = call->root == communicator->rank ? end : 0;
        break;
    case FOR_EARLIER:
        end = communicator->rank;
        break;
    case FOR_ALL:
        break;
    }
    for (int rank = first; rank < end; rank++) {
        int64_t after;
        if (!read_arrival(communicator, rank, number, call, &after))
            return -1;
        if (after > *waited) {
            *waited = after;
            last = rank;
        }
    }
    return last;
}

/* Adds a call, with this weight for calls that are not read. */
static void judge(struct communicator *communicator, uint64_t number, uint64_t weight)
{
    const struct past *call = &communicator->past[number % RING];
    int64_t waited;
    int last = last_of(communicator, number, call, &waited);
    if (last < 0)
        return;
    uint64_t time = (uint64_t)waited < call->took ? (uint64_t)waited : call->took;
    struct mpi_cell *cell = &tally_own->cells[call->cell];
    add_to(&cell->judged_calls, 1);
    add_to(&cell->judged_ticks, call->took * weight);
    add_to(&cell->waited_ticks, time * weight);
    int world = communicator->world[last];
    if (time == 0 || world < 0)
        return;
    struct mpi_pair *pair = &tally_own->pairs[world < RANKS ? world : RANKS - 1];
    add_to(&pair->waited_ticks, time * weight);
    add_to(&pair->late, weight);
}

static bool is_long(const struct communicator *communicator, uint64_t batch)
{
    uint64_t took = 0, limit = (uint64_t)LONG_NS * ((uint64_t)communicator->size - 1);
    for (uint64_t number = batch * BATCH; number < (batch + 1) * BATCH; number++)
        took += communicator->past[number % RING].took;
    return took > (limit << 32) / (value_of(&tally_file->header.ns_per_tick) | 1);
}

/* For how many batches this one is read, 0 if it is not. Long ones are all read. Of the others all ranks choose the same ones, and
 * meet no period of the program's calls. */
static uint64_t weight_of(const struct communicator *communicator, uint64_t batch)
{
    uint64_t others = (uint64_t)communicator->size - 1;
    uint64_t every = (others + READ_AT_ONCE - 1) / READ_AT_ONCE * (batch < MANY ? 1 : LESS);
    if (every == 1 || is_long(communicator, batch))
        return 1;
    return (batch * UINT64_C(0x9e3779b97f4a7c15) >> 32) % every == 0 ? every : 0;
}

static void judge_batch(struct communicator *communicator, uint64_t batch, uint64_t end, uint64_t weight)
{
    for (uint64_t number = batch * BATCH; number < end && number < (batch + 1) * BATCH; number++)
        judge(communicator, number, weight);
}

void arrivals_note(struct communicator *communicator, uint64_t begin, uint64_t took, uint32_t cell,
                   enum operation operation, int root)
{
    uint64_t number = communicator->calls++;
    struct mpi_communicator *shown = &tally_own->communicators[communicator->place];
    add_to(&shown->collectives, 1);
    /* A single rank waits for nobody. */
    if (communicator->size == 1 || value_of(&shown->reason) != JUDGED)
        return;
    struct past *call = &communicator->past[number % RING];
    call->begin = begin;
    call->took = took;
    call->cell = cell;
    call->operation = (uint16_t)operation;
    call->root = root;
    if (!communicator->arrivals && !(communicator->arrivals = take_segment(communicator)))
        return;
    word *own = &communicator->arrivals[(uint64_t)communicator->rank * RING];
    set(&own[number % RING], tag_of(number, operation) | (begin & TIME_MASK));
    /* One batch later, when the others have most likely come so far. */
    if (number % BATCH == BATCH - 1 && number >= 2 * BATCH - 1) {
        uint64_t batch = communicator->judged++, weight = weight_of(communicator, batch);
        if (weight > 0)
            judge_batch(communicator, batch, number, weight);
    }
}

void arrivals_judge_rest(struct communicator *communicator)
{
    if (!communicator->arrivals)
        return;
    for (; communicator->judged * BATCH < communicator->calls; communicator->judged++)
        judge_batch(communicator, communicator->judged, communicator->calls, 1);
}
