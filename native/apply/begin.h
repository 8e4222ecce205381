/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef APPLY_BEGIN_H
#define APPLY_BEGIN_H

/* To be called before the program sets a filter of system calls: from then on only such are made as an allocator makes. */
void filters_change(void);

#endif
