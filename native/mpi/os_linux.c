/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "os.h"
#include "base/call.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

bool os_reserve(const char *path, size_t offset, size_t bytes)
{
    long file = CALL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return false;
    long result;
    do
        result = CALL(SYS_fallocate, file, 0, offset, bytes);
    while (result == -EINTR);
    CALL(SYS_close, file);
    return result == 0;
}

void os_mask_of_process(void *bits, size_t bytes)
{
    memset(bits, 0, bytes);
    if (CALL(SYS_sched_getaffinity, 0, bytes, bits) < 0)
        memset(bits, 0, bytes);
}

long os_read_other(pid_t process, uint64_t address, uint64_t *number)
{
    struct iovec here = {number, sizeof *number}, there = {(void *)(uintptr_t)address, sizeof *number};
    long result = CALL(SYS_process_vm_readv, process, &here, 1, &there, 1, 0);
    return result == (long)sizeof *number ? 0 : result < 0 ? result : -EFAULT;
}

pid_t os_parent(void)
{
    return (pid_t)CALL(SYS_getppid, 0);
}

pid_t os_parent_of(pid_t process, char name[16])
{
    char path[32], text[256];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    long file = CALL(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    long got = CALL(SYS_read, file, text, sizeof text - 1);
    CALL(SYS_close, file);
    text[got > 0 ? got : 0] = 0;
    /* 1234 (name) S 1230: the name may have parentheses and blanks. */
    char *begin = strchr(text, '('), *end = strrchr(text, ')');
    if (!begin || !end || end < begin || strlen(end) < 5)
        return 0;
    size_t length = (size_t)(end - begin - 1);
    length = length < 15 ? length : 15;
    memcpy(name, begin + 1, length);
    name[length] = 0;
    return (pid_t)strtoul(end + 4, NULL, 10);
}

void os_yield(void)
{
    CALL(SYS_sched_yield, 0);
}

void os_print(const char *text)
{
    /* A full pipe or a closed one: there is nobody to tell. */
    long result = CALL(SYS_write, 2, text, strlen(text));
    (void)result;
}
