/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What was counted, as JSON. */
#ifndef SIMULATOR_RESULT_H
#define SIMULATOR_RESULT_H

#include <stdint.h>

/* Notes what was counted since the region before; call at the end of each. */
void result_region(void);

/* Writes the file anew, whole or not at all. */
void result_write(const char *path, uint64_t regions, uint64_t elapsed_ns);

#endif
