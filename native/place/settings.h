/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Settings that the launcher passes in the environment. Read once, when the library is loaded. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "os.h"

struct settings {
    bool active;           /* NUMA_PLACE is set and valid */
    bool verbose;          /* NUMA_VERBOSE=1 */
    bool inherit;          /* unless NUMA_INHERIT=0 */
    bool main_unbound;        /* NUMA_MAIN=0: the main thread is not bound */
    bool ranks_divide;     /* NUMA_RANKS=1: ranks of MPI divide the CPUs among themselves */
    bool runtime_binds;    /* OpenMP's own variables make it bind its threads */
    int process;           /* NUMA_PROCESS: the process that the launcher started, or 0 */
    int lock_descriptor;              /* NUMA_HOLD: descriptor of the registry, or -1 */
    int count;             /* CPUs in `order` */
    struct policy memory;  /* NUMA_MEMORY */
    struct cpus mask;      /* NUMA_MASK; without it the CPUs of NUMA_PLACE */
    short order[MAX_CPUS];     /* NUMA_PLACE: the CPU of each thread, in order */
    short node_of[MAX_CPUS];   /* NUMA_NODES plus one; 0 is unknown */
};

/* The settings; inactive before `settings_read`. */
const struct settings *settings(void);

/* Reads this environment. If it is invalid, a message says so and the library does nothing. With
 * NUMA_INHERIT=0 the library and its variables are removed from the environment, in place. */
void settings_read(char **environment);

/* Deactivates the library, and removes it and its variables from the environment. */
void settings_leave(char **environment);

/* Restricts the mask to this one, and the places to those in it. False, with nothing changed, if there are
 * none. */
bool settings_narrow(const struct cpus *mask);

/* The node of a CPU; -1 if NUMA_NODES does not contain it. */
int node_of_cpu(int cpu);

/* Whether this process can allocate on a node; assumed until a node is found without memory or outside of
 * the cpuset. */
bool node_has_memory(int node);
void node_mark_without_memory(int node);

/* The node of these CPUs; -1 if they are on several or it is unknown. */
int node_of_cpus(const struct cpus *cpus);

#endif
