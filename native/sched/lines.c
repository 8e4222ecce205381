/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lines.h"
#include "os.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void line_print(const char *format, ...)
{
    static const char name[] = "numasched: ";
    char line[512];
    size_t start = sizeof name - 1, room = sizeof line - start - 1;
    memcpy(line, name, start);
    va_list values;
    va_start(values, format);
    int wanted = vsnprintf(line + start, room, format, values);
    va_end(values);
    if (wanted < 0)
        return;
    size_t length = start + ((size_t)wanted < room ? (size_t)wanted : room - 1);
    line[length++] = '\n';
    os_print(line, length);
}
