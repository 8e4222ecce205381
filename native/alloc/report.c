/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "report.h"
#include "os.h"
#include <string.h>

void say(struct line *line, const char *text)
{
    size_t length = strlen(text), room = sizeof line->text - line->length;
    length = length > room ? room : length;
    memcpy(line->text + line->length, text, length);
    line->length += length;
}

static void say_digits(struct line *line, uint64_t number, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do
        digits[--at] = "0123456789abcdef"[number % base];
    while (number /= base);
    say(line, digits + at);
}

void say_number(struct line *line, uint64_t number)
{
    say_digits(line, number, 10);
}

void say_address(struct line *line, const void *address)
{
    say(line, "0x");
    say_digits(line, (uintptr_t)address, 16);
}

void line_print(const struct line *line)
{
    struct line whole = {0};
    say(&whole, "numalloc: ");
    size_t room = sizeof whole.text - whole.length - 1;
    size_t length = line->length < room ? line->length : room;
    memcpy(whole.text + whole.length, line->text, length);
    whole.length += length;
    whole.text[whole.length++] = '\n';
    os_print(whole.text, whole.length);
}

void misuse(const char *what, const void *block)
{
    struct line line = {0};
    say(&line, what);
    say(&line, " ");
    say_address(&line, block);
    line_print(&line);
    os_abort();
}
