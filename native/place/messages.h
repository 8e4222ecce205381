/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Messages to the user: lines on standard error that begin with "numaplace: ". */
#ifndef MESSAGES_H
#define MESSAGES_H

/* Each is printed once per process: what fails for one thread usually fails for all. */
enum failure {
    BAD_SETTING,
    NO_CORE_TABLE,
    CANNOT_BIND,
    NO_POLICY,
    NO_KEY,
    TOO_MANY_RANKS,
    NO_RECORDERS,
    FAILURES
};

__attribute__((format(printf, 2, 3))) void warn_once(enum failure failure, const char *format, ...);

/* Only with NUMA_VERBOSE=1. */
__attribute__((format(printf, 1, 2))) void print_if_verbose(const char *format, ...);

#endif
