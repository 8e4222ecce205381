/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lines on standard error that begin with "numasched: ". */
#ifndef SCHED_LINES_H
#define SCHED_LINES_H

__attribute__((format(printf, 1, 2))) void line_print(const char *format, ...);

#endif
