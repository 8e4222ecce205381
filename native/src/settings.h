/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the launcher asks for in the environment. Read once, when the library is loaded. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "os.h"

struct settings {
    bool active;           /* NUMA_PLACE is there and can be used */
    bool verbose;          /* NUMA_VERBOSE=1 */
    bool inherit;          /* unless NUMA_INHERIT=0 */
    bool main_free;        /* NUMA_MAIN=0: the main thread keeps the whole mask */
    bool ranks_divide;     /* NUMA_RANKS=1: ranks of MPI divide the CPUs among themselves */
    bool runtime_binds;    /* OpenMP's own variables ask it to bind its threads */
    int process;           /* NUMA_PROCESS: the process that the launcher started, 0 without */
    int hold;              /* NUMA_HOLD: descriptor of the registry, -1 without */
    int count;             /* CPUs in `order` */
    struct policy memory;  /* NUMA_MEMORY */
    struct cpus mask;      /* NUMA_MASK; without it the CPUs of NUMA_PLACE */
    short order[MAX_CPUS];     /* NUMA_PLACE: the CPU of each thread, in order */
    short node_of[MAX_CPUS];   /* NUMA_NODES, each one more than it is: 0 is unknown */
};

/* The settings; inactive before `settings_read`. */
const struct settings *settings(void);

/* Reads this environment. What is wrong there is told, and the library does nothing. With
 * NUMA_INHERIT=0 the library and its variables are taken out of the environment, in place. */
void settings_read(char **environment);

/* Does nothing from now on, and the library and its variables are taken out of the environment. */
void settings_leave(char **environment);

/* From now on, this is the whole mask, with those places that are in it. False, with nothing
 * changed, if none is. */
bool settings_narrow(const struct cpus *mask);

/* The node of a CPU, -1 if NUMA_NODES does not tell. */
int node_of_cpu(int cpu);

/* Whether a node gives memory to this process; all do until one is found not to: it has none, or
 * the process's cpuset leaves it out. */
bool node_gives_memory(int node);
void node_gives_none(int node);

/* The only node of these CPUs, -1 if they are on several or none is known. */
int node_of_cpus(const struct cpus *cpus);

#endif
