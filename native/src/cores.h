/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which cores of the plan are free. One thread has a core at a time, in this process and, where
 * the registry's descriptor is open, in all processes of the application. Without locks: all of it
 * may be called from anywhere. */
#ifndef CORES_H
#define CORES_H

#include <stdbool.h>

enum { NO_CORE = -1 };

/* Looks at the registry's descriptor once; before the first of the others. */
void cores_begin(void);

/* The first free core of the plan, now taken; NO_CORE if none is free. */
int cores_take(void);

/* The core of this CPU if it is one of the plan and free, now taken; else NO_CORE. */
int cores_take_cpu(int cpu);

/* The first free core on this node, else the first of all; now taken. NO_CORE if none is free. */
int cores_take_on(int node);

/* Gives back what was taken. NO_CORE is nothing. */
void cores_release(int core);

/* The CPU of a core. */
int core_cpu(int core);

/* The core of a CPU, NO_CORE if it is not one of the plan. */
int core_of_cpu(int cpu);

/* In a forked child: its parent's threads are not here, and what they hold is not its own. */
void cores_forget(void);

#endif
