/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef BEGIN_H
#define BEGIN_H

/* Does what the constructor does, once: libraries may call interposed functions before. */
void library_begin(char **environment);

#endif
