/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef NUMAPLACE_H
#define NUMAPLACE_H

/*
 * Threads that place themselves: link with -lnumaplace, or preload libnumaplace.so, and start the
 * program with `numa run`. Then each thread is bound to a core of its own and finds its stack and
 * thread-local storage on the core's node, with no call at all; these functions tell where threads
 * are, and do it again. All are safe in any thread; the first three in signal handlers too.
 */

#define NUMAPLACE_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* The CPU that the calling thread is bound to, by whomever; -1 if it may run on several. */
int numaplace_core(void);

/* The node of the CPU that the calling thread runs on; -1 if it is not known: the program was not
 * started by `numa run`. */
int numaplace_node(void);

/* The version of the library, as NUMAPLACE_VERSION of its header. */
const char *numaplace_version(void);

/*
 * Places the calling thread again, wherever it bound itself meanwhile: on the core that it has, or
 * on the first free one of the plan, with its stack and thread-local storage. Gives 0, or an errno:
 * ENOTSUP if the program was not started by `numa run`, EAGAIN if no core is free, else what the
 * kernel says; then nothing has changed.
 */
int numaplace_rebind(void);

/*
 * The program enters a phase, or leaves it: recorders that run for this user write a label, NAME or
 * "NAME end", and the simulated machine counts what happens in between. Control characters in NAME
 * become blanks; what is too long for a label is cut. Gives how many recorders took the label.
 */
int numaplace_phase_begin(const char *name);
int numaplace_phase_end(const char *name);

#ifdef __cplusplus
}
#endif

#endif
