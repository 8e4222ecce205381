/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "os.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

void *os_map_file(const char *path, size_t bytes)
{
    int before = errno;
    struct stat about;
    void *memory = MAP_FAILED;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (file >= 0 && syscall(SYS_fstat, file, &about) == 0 && S_ISREG(about.st_mode) && (size_t)about.st_size >= bytes)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (file >= 0)
        syscall(SYS_close, file);
    errno = before;
    return memory == MAP_FAILED ? NULL : memory;
}

void *os_map_private(size_t bytes)
{
    int before = errno;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    errno = before;
    return memory == MAP_FAILED ? NULL : memory;
}

void *os_map_wiped(size_t bytes)
{
    int before = errno;
    void *memory = os_map_private(bytes);
    if (memory)
        (void)madvise(memory, bytes, MADV_WIPEONFORK);
    errno = before;
    return memory;
}

uint64_t os_pid(void)
{
    return (uint64_t)syscall(SYS_getpid);
}

uint64_t os_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_minflt : 0;
}

uint64_t os_thread_cpu(void)
{
    struct timespec used = {0};
    int before = errno;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &used);
    errno = before;
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
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
    int before = errno;
    int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    while (file >= 0 && length < sizeof text) {
        long got = syscall(SYS_read, file, text + length, sizeof text - length);
        if (got <= 0)
            break;
        length = pass_lines(text, length + (size_t)got, line);
    }
    if (file >= 0)
        syscall(SYS_close, file);
    errno = before;
}
