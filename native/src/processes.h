/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stands in for all functions of the C library that start processes, and for those that start threads
 * by other ways than pthread_create. */
#ifndef PROCESSES_H
#define PROCESSES_H

/* Finds the C library's functions: later, in a child that shares its parent's memory, it is too late. */
void processes_begin(void);

#endif
