/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "os.h"
#include "base/call.h"
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

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

int os_append(const char *path, const char *text)
{
    long file = CALL(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
    size_t length = strlen(text), done = 0;
    struct stat data;
    long result = file < 0 ? file : CALL(SYS_fstat, file, &data);
    /* What is in /proc/PID/fd may be another file when that process has started another program. */
    if (result >= 0 && !S_ISREG(data.st_mode))
        result = -EINVAL;
    while (result >= 0 && done < length) {
        result = CALL(SYS_write, file, text + done, length - done);
        if (result == -EINTR)
            result = 0;
        done += result > 0 ? (size_t)result : 0;
    }
    if (file >= 0)
        CALL(SYS_close, file);
    return result < 0 ? (int)result : 0;
}

uint64_t os_file_limit(void)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    CALL(SYS_prlimit64, 0, RLIMIT_FSIZE, NULL, &limit);
    return limit.rlim_cur;
}

int os_grow(int file, uint64_t bytes)
{
    struct stat data;
    long result = CALL(SYS_fstat, file, &data);
    if (result < 0 || (uint64_t)data.st_size >= bytes)
        return (int)result;
    /* The kernel would end the process. */
    return bytes > os_file_limit() ? -EFBIG : (int)CALL(SYS_ftruncate, file, bytes);
}

int os_memory_file(const char *name, uint64_t bytes)
{
    enum { CLOSED_BY_EXEC = 1 };
    long file = CALL(SYS_memfd_create, name, CLOSED_BY_EXEC);
    if (file < 0)
        return (int)file;
    int result = os_grow((int)file, bytes);
    if (result == 0)
        result = (int)CALL(SYS_fallocate, file, FALLOC_FL_KEEP_SIZE, 0, bytes);
    if (result == 0)
        return (int)file;
    CALL(SYS_close, file);
    return result;
}

int os_memory_file_of(pid_t process, const char *name)
{
    enum { MOST = 1024 };
    char path[48], target[64], wanted[64];
    int length = snprintf(wanted, sizeof wanted, "/memfd:%s ", name);
    for (int number = 0; number < MOST; number++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)process, number);
        long got = CALL(SYS_readlinkat, AT_FDCWD, path, target, sizeof target);
        if (got > length && memcmp(target, wanted, (size_t)length) == 0)
            return (int)CALL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
        if (got < 0 && got != -ENOENT)
            return (int)got;
    }
    return -ENOENT;
}

uint64_t os_identity(int file)
{
    struct stat data;
    if (CALL(SYS_fstat, file, &data) < 0)
        return 0;
    return (uint64_t)data.st_dev << 40 ^ (uint64_t)data.st_ino;
}

int os_take(int file, uint64_t identity, uint64_t offset, uint64_t bytes)
{
    long result;
    if (os_identity(file) != identity)
        return -EBADF;
    do
        result = CALL(SYS_fallocate, file, FALLOC_FL_KEEP_SIZE, offset, bytes);
    while (result == -EINTR);
    return (int)result;
}

void *os_map_file(int file, uint64_t bytes)
{
    return memory_of(CALL(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
}

void os_close(int file)
{
    CALL(SYS_close, file);
}

/* A name that is no path: it is gone when the socket is. */
static socklen_t address_of(const char *name, struct sockaddr_un *address)
{
    size_t length = strlen(name);
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path + 1, name, length);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

int os_be_first(const char *name)
{
    enum { QUEUE = 4096 };
    struct sockaddr_un address;
    socklen_t length = address_of(name, &address);
    long socket = CALL(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0)
        return (int)socket;
    long result = CALL(SYS_bind, socket, &address, length);
    if (result == 0)
        result = CALL(SYS_listen, socket, QUEUE);
    if (result < 0)
        CALL(SYS_close, socket);
    return (int)result;
}

/* Nobody has to accept a connection: the kernel says at once who listens. */
long os_first(const char *name)
{
    struct sockaddr_un address;
    struct ucred peer = {0};
    socklen_t length = address_of(name, &address), bytes = sizeof peer;
    long socket = CALL(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0)
        return socket;
    long result = CALL(SYS_connect, socket, &address, length);
    if (result == 0)
        result = CALL(SYS_getsockopt, socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes);
    CALL(SYS_close, socket);
    if (result < 0)
        return result == -ECONNREFUSED ? 0 : result;
    /* A process of another PID namespace has no number here. */
    return peer.uid != (uid_t)CALL(SYS_geteuid, 0) || peer.pid <= 0 ? -EPERM : peer.pid;
}

void os_sleep_on(const void *word, uint32_t value, uint64_t nanoseconds)
{
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    CALL(SYS_futex, word, FUTEX_WAIT, value, &time);
}

void os_wake_all(const void *word)
{
    CALL(SYS_futex, word, FUTEX_WAKE, INT32_MAX);
}

void os_sleep(uint64_t nanoseconds)
{
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    CALL(SYS_nanosleep, &time, NULL);
}
