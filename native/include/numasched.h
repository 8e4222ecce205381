/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef NUMASCHED_H
#define NUMASCHED_H

/* Loops that a team of threads shares: each member runs the part that a static schedule would give it, in chunks from its
 * front; a member without work takes from the back of the part that has the most left, nearest first. Link with -lnumasched.
 * Programs with OpenMP need none of this: libnumasched.so does it for their loops when it is preloaded.
 *
 * Each member, a thread with a number from 0 on, runs the same loops in the same order:
 *
 *     long long from, to;
 *     numasched_begin(team, member, 0, count, 1, 16);
 *     while (numasched_next(team, member, &from, &to))
 *         for (long long i = from; i < to; i++)
 *             work(i);
 *     numasched_end(team, member);
 *
 * Nothing here waits for other members but numasched_begin, for a tenth of a second, if it is eight loops ahead of one. */

#define NUMASCHED_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct numasched_team numasched_team;

/* A team of up to 4096 members. NULL with errno EINVAL or ENOMEM. */
numasched_team *numasched_create(unsigned members);

/* When no member is in a loop. Nothing if `team` is NULL. */
void numasched_destroy(numasched_team *team);

/* Says that the calling thread is this member, and where it runs. Optional; see numasched_settle. Returns 0, or EINVAL if
 * there is no such member. */
int numasched_join(numasched_team *team, unsigned member);

/* Puts what members share onto the nodes where they said that they are. One member calls it while no other one is in a
 * function of this header, as between two barriers. Returns 0 or ENOMEM; then all is as it was. */
int numasched_settle(numasched_team *team);

/* Enters the loop of the values from `begin` on, in steps of `step`, as long as they are before `end`: below it, or above it
 * if the step is negative. Chunks have `chunk` iterations or a multiple, but the last one of the loop. All members give the
 * same values. Returns 0, or EINVAL if there is no such member, the step is 0 or the chunk is not positive. */
int numasched_begin(numasched_team *team, unsigned member, long long begin, long long end, long long step, long long chunk);

/* The next chunk: 1, and its first value and the value behind it; 0 if there is none for this member. */
int numasched_next(numasched_team *team, unsigned member, long long *from, long long *to);

/* Leaves the loop. Other members may still be in it. */
void numasched_end(numasched_team *team, unsigned member);

/* The version of the library; NUMASCHED_VERSION is that of the header. */
const char *numasched_version(void);

#ifdef __cplusplus
}
#endif

#endif
