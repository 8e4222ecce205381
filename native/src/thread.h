/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The calling thread: what it has, how it gets and loses it. */
#ifndef THREAD_H
#define THREAD_H

#include "cores.h"
#include "os.h"

/* What a thread has. */
struct place {
    int core;          /* taken for it, or NO_CORE */
    int node;          /* its pages are here; -1 if nobody saw to it */
    uintptr_t bottom;  /* of its stack, 0 if not known */
};

struct place *thread_place(void);

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

/* Binds the main thread to the first free core, unless it is bound already, by itself or by its
 * OpenMP: then its pages follow it. Does so once, when the first thread is created; what it takes stays taken. */
void thread_bind_main(void);

/* The same if the main thread is bound already. Nothing happens if it is not. */
void thread_follow_main(void);

/* Gives the main thread the whole mask again if it was bound by `thread_bind_main`: a runtime is
 * about to look at it. */
void thread_free_main(void);

#endif
