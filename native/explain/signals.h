/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The timers' signal. The program sees its own action for it, not this library's. */
#ifndef SIGNALS_H
#define SIGNALS_H

/* Takes the signal. Returns its number, 0 if that is not possible. */
int signals_begin(void);

#endif
