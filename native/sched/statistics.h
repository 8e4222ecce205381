/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* NUMASCHED_STATS: what the loops of the process did, printed when it ends. */
#ifndef SCHED_STATISTICS_H
#define SCHED_STATISTICS_H

#include "shares.h"
#include "spans.h"
#include <stdatomic.h>
#include <stdint.h>

enum { TIMED = 64 };               /* loops of a team whose times are kept at once: others are at most RING ahead of one */

/* Times of a member in loops, in ticks: of the iterations that a static schedule gives it, and of those that it ran. */
struct timing {
    _Alignas(LINE) _Atomic uint64_t home[TIMED], busy[TIMED];
};

/* What a member has counted in a region. */
struct tally {
    uint64_t chunks, iterations, off_node;
    uint64_t since;                /* when the present chunk began, in ticks; 0 without one */
    uint32_t home;                 /* of the present chunk */
};

/* For the members of a team; NULL without memory. */
struct timing *timing_new(uint32_t capacity);
void timing_free(struct timing *timing, uint32_t capacity);

/* A member begins a chunk. */
void tally_chunk(struct tally *tally, struct timing *timing, const struct member *member, const struct span *span,
                 const struct range *range);
/* A member ends its present chunk, if it has one. */
void tally_end(struct tally *tally, struct timing *timing, const struct member *member);
/* One member begins a loop: that of all members which is over is counted. */
void timing_fold(struct timing *timing, const struct shares *shares, uint64_t loop);
/* A region is over whose next loop this would be. */
void timing_fold_rest(struct timing *timing, const struct shares *shares, uint64_t next);
void tally_add(const struct tally *tally);

void statistics_passed(void);
void statistics_begin_child(void);

#endif
