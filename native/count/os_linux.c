/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What no other library asks of the kernel: pages that a child does not inherit, page faults, all mappings. */
#define _GNU_SOURCE
#include "os.h"
#include "base/call.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

void *os_allocate_wiped(size_t bytes)
{
    void *memory = os_allocate(bytes, MAP_POPULATE);
    if (memory)
        CALL(SYS_madvise, memory, bytes, MADV_WIPEONFORK);
    return memory;
}

uint64_t os_faults(void)
{
    struct rusage usage;
    return CALL(SYS_getrusage, RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_minflt : 0;
}

/* Passes on all complete lines, and returns how many bytes are left at the start of the text. */
static size_t pass_lines(char *text, size_t length, void (*line)(char *text))
{
    size_t from = 0;
    for (char *end; (end = memchr(text + from, '\n', length - from)); from = (size_t)(end - text) + 1) {
        *end = 0;
        line(text + from);
    }
    memmove(text, text + from, length - from);
    return length - from;
}

void os_each_mapping(void (*line)(char *text))
{
    static char text[16 << 10];
    long file = CALL(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    while (file >= 0 && length < sizeof text) {
        long got = CALL(SYS_read, file, text + length, sizeof text - length);
        if (got <= 0)
            break;
        length = pass_lines(text, length + (size_t)got, line);
    }
    if (file >= 0)
        CALL(SYS_close, file);
}
