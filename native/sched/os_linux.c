/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "os.h"
#include "base/call.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <string.h>

int os_cpu(void)
{
    int saved = errno;
    int cpu = sched_getcpu();
    errno = saved;
    return cpu;
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

void os_yield(void)
{
    CALL(SYS_sched_yield, 0);
}

void os_print(const char *text, size_t length)
{
    while (length > 0) {
        long wrote = CALL(SYS_write, STDERR_FILENO, text, length);
        if (wrote == -EINTR)
            continue;
        if (wrote <= 0)
            return;
        text += wrote;
        length -= (size_t)wrote;
    }
}

void os_end(int status)
{
    for (;;)
        CALL(SYS_exit_group, status);
}
