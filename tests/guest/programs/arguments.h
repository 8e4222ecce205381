/* Arguments and ends of the guest programs: exit 2 for bad arguments, 1 when something is wrong,
 * always with one sentence on standard error. */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noreturn)) static inline void say_and_exit(int status, const char *format,
                                                          va_list values)
{
    fflush(stdout);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    exit(status);
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say_and_exit(1, format, values);
}

__attribute__((noreturn, format(printf, 1, 2))) static inline void bad_arguments(const char *format,
                                                                                 ...)
{
    va_list values;
    va_start(values, format);
    say_and_exit(2, format, values);
}

/* A whole number from low to high; `what` is its name in the usage line. */
static inline long number(const char *what, const char *text, long low, long high)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < low || value > high)
        bad_arguments("%s is '%s', give a number from %ld to %ld", what, text, low, high);
    return value;
}

/* Memory that the program itself needs, filled with zeros. */
static inline void *zeroed(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        fail("no memory for %zu x %zu bytes", count, size);
    return memory;
}

#endif
