/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The placement of the calling thread. */
#ifndef THREAD_H
#define THREAD_H

#include "cores.h"
#include "os.h"

enum { NO_CPU = -1 };

/* The placement of a thread. */
struct place {
    int core;          /* its core, or NO_CORE */
    int cpu;           /* the CPU to which this library bound it, or NO_CPU */
    int node;          /* the node of its pages; -1 if they were not placed */
    uintptr_t bottom;  /* of its stack; 0 if unknown */
};

/* Of a thread that was not placed. */
#define NO_PLACE {NO_CORE, NO_CPU, -1, 0}

struct place *thread_place(void);

/* The calling thread starts with this placement. Its core is released when it ends, in whatever way. */
void thread_begin(const struct place *place);

/* If the calling thread's policy interleaves or prefers a node, keeps its stack out of that policy. */
void thread_keep_stack(const struct policy *policy);

/* Releases the core of the calling thread, if it has one. */
void thread_release(void);

/* Binds the calling thread to a core that it has taken, and moves its pages there. After an error nothing
 * has changed. */
int thread_bind(int core);

/* Binds the main thread to a free core, unless it is bound already, by itself or its OpenMP: then only its
 * pages are moved. Happens once, when the first thread is created; the core stays taken. The launched
 * program gets its first core, whose node its memory has come from; a process that it started gets the
 * first free core of the node that it runs on. */
void thread_bind_main(void);

/* The same if the main thread is bound already; otherwise does nothing. */
void thread_follow_main(void);

/* Gives the calling thread the whole mask again if this library bound it: a runtime is about to read it, and takes it for that of
 * all threads. */
void thread_unbind(void);

/* Whether this library, or an OpenMP that follows the plan, bound the calling thread to its only CPU, and
 * not the program. */
bool thread_is_given(int cpu);

/* The mask with which the process started. */
const struct cpus *thread_initial_mask(void);

/* Records that the program has set the calling thread's mask. */
void thread_was_bound(void);

/* Records that an OpenMP runtime binds the threads of this process to places of the plan. */
void thread_runtime_binds(void);

/* Whether this is the main thread, with the initial policy that prefers its first core's node, which the
 * launched program has until its first thread is created. A child that shares its parent's memory is like
 * its parent. */
bool thread_has_initial_policy(void);

#endif
