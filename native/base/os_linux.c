/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "os.h"
#include "call.h"
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

pid_t os_process(void)
{
    return (pid_t)CALL(SYS_getpid, 0);
}

pid_t os_thread(void)
{
    return (pid_t)CALL(SYS_gettid, 0);
}

uint64_t os_time(clockid_t clock)
{
    struct timespec now = {0};
    /* The C library's function may be another library's, which shows programs another time. */
    CALL(SYS_clock_gettime, clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void *os_allocate(size_t bytes, int flags)
{
    flags |= MAP_PRIVATE | MAP_ANONYMOUS;
    return memory_of(CALL(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, flags, -1, 0));
}

void *os_map_shared(const char *path, size_t least, size_t *bytes, int flags)
{
    struct stat data;
    void *memory = NULL;
    long file = CALL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return NULL;
    if (CALL(SYS_fstat, file, &data) == 0 && S_ISREG(data.st_mode) && (size_t)data.st_size >= least) {
        *bytes = (size_t)data.st_size;
        memory = memory_of(CALL(SYS_mmap, 0, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, file, 0));
    }
    CALL(SYS_close, file);
    return memory;
}

void os_unmap(void *memory, size_t bytes)
{
    CALL(SYS_munmap, memory, bytes);
}

void os_mask_signals(int how, const sigset_t *set, sigset_t *old)
{
    CALL(SYS_rt_sigprocmask, how, set, old, KERNEL_SET_BYTES);
}

/* The number behind a name in /proc/self/status. */
static bool field(const char *text, const char *name, uint64_t *value)
{
    const char *line = strstr(text, name);
    if (line)
        *value = strtoull(line + strlen(name), NULL, 10);
    return line;
}

uint64_t os_seccomp_filters(void)
{
    char text[8192];
    uint64_t mode = 0, count = 0;
    os_read("/proc/self/status", text, sizeof text);
    if (!field(text, "\nSeccomp:", &mode) || mode == 0)
        return 0;
    /* Since Linux 5.9. */
    return field(text, "\nSeccomp_filters:", &count) ? count : 1;
}

size_t os_read(const char *path, char *text, size_t room)
{
    long file = CALL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    while (file >= 0 && length + 1 < room) {
        long got = CALL(SYS_read, file, text + length, room - 1 - length);
        if (got <= 0)
            break;
        length += (size_t)got;
    }
    if (file >= 0)
        CALL(SYS_close, file);
    text[length] = 0;
    return length;
}

void os_prefer_node(void *memory, size_t bytes, int node)
{
    enum { BITS = 8 * sizeof(unsigned long), NODES = 1024 };
    unsigned long mask[NODES / BITS] = {0};
    /* A filter may end the process for a call that the program itself never makes. */
    if (node < 0 || node >= NODES || os_seccomp_filters())
        return;
    mask[node / BITS] = 1UL << node % BITS;
    CALL(SYS_mbind, memory, bytes, MPOL_PREFERRED, mask, NODES, 0);
}
