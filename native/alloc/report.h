/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lines on standard error, made without memory. */
#ifndef ALLOC_REPORT_H
#define ALLOC_REPORT_H

#include <stddef.h>
#include <stdint.h>

struct line {
    char text[480];
    size_t length;
};

/* What does not fit is left out. */
void say(struct line *line, const char *text);
void say_number(struct line *line, uint64_t number);
void say_address(struct line *line, const void *address);
/* Prints it after the name of the library and the process. */
void line_print(const struct line *line);

/* A program did something wrong with this block: prints it and aborts. */
_Noreturn void misuse(const char *what, const void *block);

#endif
