/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "os.h"
#include "base/call.h"
#include <errno.h>
#include <sched.h>
#include <string.h>

int os_cpu(void)
{
    int saved = errno;
    int cpu = sched_getcpu();
    errno = saved;
    return cpu;
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
