/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writing, waiting and reading in the parts of a team. */
#ifndef MPI_SLOTS_H
#define MPI_SLOTS_H

#include "team.h"
#include "os.h"

/* A collective that all ranks of a team make. */
struct call {
    uint64_t number, what;
    size_t bytes;
    bool is_large;
    unsigned up_place, down_place;  /* of a large one */
    uint64_t up_before, down_before;/* the one that used these places before, plus one; 0: none */
    int line_root, large_root;      /* of reduces that used the places towards the result before, plus one */
};

struct call call_begin(struct team *team, enum served operation, size_t bytes, int root);
/* Everything that this rank reads in the collective has been read. */
void call_end(struct team *team, const struct call *call);

/* Waits until a word of a part is at least this. */
void wait_longer(struct team *team, struct part *part, word *at, uint64_t value);
static inline void wait_for(struct team *team, struct part *part, word *at, uint64_t value)
{
    enum { PAUSES = 200 };
    for (int i = team->is_crowded ? PAUSES : 0; i < PAUSES; i++) {
        if (__builtin_expect(atomic_load_explicit(at, memory_order_acquire) >= value, true))
            return;
        os_pause();
    }
    if (atomic_load_explicit(at, memory_order_acquire) < value)
        wait_longer(team, part, at, value);
}

/* Waits until all ranks have completed a collective. */
void wait_all(struct team *team, uint64_t number);

/* Wakes those that sleep until a word changes, after it has. */
void wake(struct team *team, struct part *part, word *at);
/* Sets a word, and wakes those that sleep. */
void publish(struct team *team, struct part *part, word *at, uint64_t value);

unsigned char *up_data(struct team *team, const struct call *call, int rank);
unsigned char *down_data(struct team *team, const struct call *call, int rank);

/* Gives data towards the result, to the one rank that reads it; what others gave. */
void put_up(struct team *team, const struct call *call, const void *data);
void *wait_up(struct team *team, const struct call *call, int rank);
/* Gives data to ranks of the own group, to leaders, and to one more rank, -1 for none. */
void put_down(struct team *team, const struct call *call, const void *data, int extra);
void *wait_down(struct team *team, const struct call *call, int rank);

/* The same where ranks share CPUs. */
void crowded_barrier(struct team *team, const struct call *call);
void crowded_broadcast(struct team *team, const struct call *call, void *data, int root);
void crowded_reduce(struct team *team, const struct call *call, const void *in, void *out,
                    const struct reduction *reduction, int root);

#endif
