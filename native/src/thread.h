/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The calling thread: what it has, how it gets and loses it. */
#ifndef THREAD_H
#define THREAD_H

#include "cores.h"
#include "os.h"

enum { NO_CPU = -1 };

/* What a thread has. */
struct place {
    int core;          /* taken for it, or NO_CORE */
    int cpu;           /* it was bound to it by this library, or NO_CPU */
    int node;          /* its pages are here; -1 if nobody saw to it */
    uintptr_t bottom;  /* of its stack, 0 if not known */
};

/* Of a thread that nothing was done for. */
#define NO_PLACE {NO_CORE, NO_CPU, -1, 0}

struct place *thread_place(void);

/* The calling thread is the only one of a forked child, with the mask and the policy of the one that
 * forked. */
void thread_begin_child(void);

/* Reads the settings and prepares what threads need. Once; calls after the first do nothing. */
void thread_library_begin(char **environment);

/* The calling thread begins with this place: its core is given back when it ends, however it
 * ends. */
void thread_begin(const struct place *place);

/* Where the calling thread's policy takes memory from several nodes in turn or prefers one, its
 * stack does not follow. */
void thread_keep_stack(const struct policy *policy);

/* Gives back the core of the calling thread, if it has one. */
void thread_release(void);

/* Binds the calling thread to a core that it has taken, and brings its pages there. On an error
 * nothing has changed. */
int thread_bind(int core);

/* Binds the main thread to a free core, unless it is bound already, by itself or by its OpenMP:
 * then its pages follow it. Does so once, when the first thread is created; what it takes stays taken.
 * The program that was launched gets its first core, where its memory has come from since it began;
 * a process that it started gets the first free core of the node that it runs on. */
void thread_bind_main(void);

/* The same if the main thread is bound already. Nothing happens if it is not. */
void thread_follow_main(void);

/* Gives the main thread the whole mask again if it was bound by `thread_bind_main`: a runtime is
 * about to look at it. */
void thread_free_main(void);

/* Whether the calling thread's only CPU was given to it, by this library or by an OpenMP that follows
 * the plan, and not asked for by the program. */
bool thread_is_given(int cpu);

/* The mask that the process began with. */
const struct cpus *thread_mask_of_start(void);

/* The program has set the calling thread's mask. */
void thread_was_bound(void);

/* An OpenMP binds the threads of this process to places of the plan. */
void thread_runtime_binds(void);

/* Whether this is the main thread and its memory is preferred on its first core's node, as it is from
 * the start of the program that was launched until its first thread is created. A child that shares its
 * parent's memory is as its parent. */
bool thread_has_policy_of_start(void);

/* Whether the library began in the calling process; not so in one that shares its parent's memory. */
bool thread_is_of_process(void);

#endif
