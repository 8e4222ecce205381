/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CREATE_H
#define CREATE_H

/* Looks for the C library's functions, so that later nobody waits for the loader. */
void create_begin(void);

/* Threads cannot be bound: with an errno that says that the kernel refuses it, from now on all are
 * created as without the library. */
void create_refused(int error);

#endif
