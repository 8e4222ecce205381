/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stands in for all functions of the C library that start processes, and for those that start threads
 * by other ways than pthread_create. */
#ifndef PROCESSES_H
#define PROCESSES_H

/* Finds those of the C library's functions that are also called where nothing can be looked for. */
void processes_begin(void);

#endif
