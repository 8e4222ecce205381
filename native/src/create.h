/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CREATE_H
#define CREATE_H

/* Looks for the C library's pthread_create, so that later nobody waits for the loader. */
void create_begin(void);

#endif
