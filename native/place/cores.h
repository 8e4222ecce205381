/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The free cores of the plan. A core belongs to one thread at a time, in this process and, if the
 * registry's descriptor is open, in all processes of the application. Lock-free: all functions may be
 * called anywhere. */
#ifndef CORES_H
#define CORES_H

#include <stdbool.h>

enum { NO_CORE = -1 };

/* Checks the registry's descriptor; called once, before the other functions. */
void cores_begin(void);

/* Takes the first free core of the plan; NO_CORE if none is free. */
int cores_take(void);

/* Takes the core of this CPU if it is in the plan and free; else NO_CORE. */
int cores_take_cpu(int cpu);

/* Takes the first free core on this node, else the first free one; NO_CORE if none is free. */
int cores_take_on(int node);

/* Releases a core; NO_CORE does nothing. */
void cores_release(int core);

/* The CPU of a core. */
int core_cpu(int core);

/* The core of a CPU; NO_CORE if it is not in the plan. */
int core_of_cpu(int cpu);

/* In a forked child, which does not have its parent's threads: marks all cores as free. */
void cores_forget(void);

#endif
