/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CREATE_H
#define CREATE_H

/* Looks up the C library's functions, so that threads need not wait for the loader later. */
void create_begin(void);

/* Reports that threads cannot be bound. If the errno is permanent, all threads are created as without the
 * library from now on. */
void create_refused(int error);

/* A thread beside the main one begins a team of GCC's OpenMP. */
void create_has_several_teams(void);

/* In a forked child, which does not have its parent's threads. */
void create_forget(void);

#endif
