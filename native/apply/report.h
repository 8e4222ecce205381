/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the library tells while the program runs. */
#ifndef REPORT_H
#define REPORT_H

#include "cure.h"

/* A line on standard error: an object got its policy first, for this number of bytes. */
void report_first(const struct object *object, uint64_t bytes);

#endif
