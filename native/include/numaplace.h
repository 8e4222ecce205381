/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef NUMAPLACE_H
#define NUMAPLACE_H

/* Binds threads automatically: link with -lnumaplace, or preload libnumaplace.so, and start the program
 * with `numa run`. Then each thread is bound to its own core, with its stack and thread-local storage on
 * that core's node, without any call; these functions return where threads are, and bind them again. All
 * are safe in any thread; the first three in signal handlers too. */

#define NUMAPLACE_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* The CPU to which the calling thread is bound; -1 if it may run on several. */
int numaplace_core(void);

/* The node of the CPU on which the calling thread runs; -1 if it is unknown because the program was not
 * started by `numa run`. */
int numaplace_node(void);

/* The version of the library; NUMAPLACE_VERSION is that of the header. */
const char *numaplace_version(void);

/* Binds the calling thread again, if it has bound itself elsewhere: to its core, or else to the first free
 * one of the plan, and moves its stack and thread-local storage. Returns 0, or an errno: ENOTSUP if the
 * program was not started by `numa run`, EAGAIN if no core is free, else the kernel's error; then nothing
 * has changed. */
int numaplace_rebind(void);

/* The program enters a phase, or leaves it: recorders of this user write a label, NAME or "NAME end", and
 * the simulated machine counts what happens in between. Control characters in NAME become blanks; long
 * names are cut. Returns how many recorders received the label. */
int numaplace_phase_begin(const char *name);
int numaplace_phase_end(const char *name);

#ifdef __cplusplus
}
#endif

#endif
