/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "messages.h"
#include "os.h"
#include "settings.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void say(const char *format, va_list values)
{
    static const char name[] = "numaplace: ";
    char line[512];
    size_t start = sizeof name - 1, room = sizeof line - start - 1;
    memcpy(line, name, start);
    int wanted = vsnprintf(line + start, room, format, values);
    if (wanted < 0)
        return;
    size_t length = start + ((size_t)wanted < room ? (size_t)wanted : room - 1);
    line[length++] = '\n';
    os_print(line, length);
}

void warn_once(enum failure failure, const char *format, ...)
{
    static atomic_bool is_printed[FAILURES];
    if (atomic_exchange(&is_printed[failure], true))
        return;
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
}

void print_if_verbose(const char *format, ...)
{
    if (!settings()->verbose)
        return;
    va_list values;
    va_start(values, format);
    say(format, values);
    va_end(values);
}
