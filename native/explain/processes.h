/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes that begin, end, or filter their system calls. */
#ifndef EXPLAIN_PROCESSES_H
#define EXPLAIN_PROCESSES_H

void processes_begin(void);
/* The process ends: the observer takes its samples while there is its memory. */
void processes_end(void);

#endif
