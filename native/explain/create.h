/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pthread_create and thrd_create in place of the C library's. */
#ifndef EXPLAIN_CREATE_H
#define EXPLAIN_CREATE_H

void create_begin(void);

/* Samples the calling thread: the first one, or the only one of a forked child. */
void create_first_thread(void);

#endif
