/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes that begin, end, or filter their system calls; base/calls.h has what they call then. */
#ifndef EXPLAIN_PROCESSES_H
#define EXPLAIN_PROCESSES_H

void processes_begin(void);

#endif
