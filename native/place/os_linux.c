/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "os.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The result of a system call as an errno; keeps the program's errno. */
#define ERROR_OF(call)                                                                             \
    ({                                                                                             \
        int saved = errno;                                                                          \
        int error = (call) < 0 ? errno : 0;                                                        \
        errno = saved;                                                                              \
        error;                                                                                     \
    })

/* The kernel subtracts one. */
enum { NODE_BITS = MAX_NODES + 1 };

struct policy policy_of_node(int mode, int node)
{
    struct policy policy = {.mode = mode};
    if (node >= 0)
        policy.nodes[node / WORD] |= 1UL << node % WORD;
    return policy;
}

bool policy_forbids(const struct policy *policy, int node)
{
    return policy->mode == MPOL_BIND && !(policy->nodes[node / WORD] >> node % WORD & 1);
}

bool policy_is_local(const struct policy *policy)
{
    return policy->mode == MPOL_DEFAULT || policy->mode == MPOL_LOCAL;
}

int os_mask(pid_t thread, struct cpus *mask)
{
    memset(mask, 0, sizeof *mask);
    return ERROR_OF(syscall(SYS_sched_getaffinity, thread, sizeof *mask, mask));
}

int os_set_mask(pid_t thread, const struct cpus *mask)
{
    return os_set_mask_of(thread, sizeof *mask, mask);
}

int os_set_mask_of(pid_t thread, size_t bytes, const void *mask)
{
    return ERROR_OF(syscall(SYS_sched_setaffinity, thread, bytes, mask));
}

int os_policy(struct policy *policy)
{
    memset(policy, 0, sizeof *policy);
    return ERROR_OF(syscall(SYS_get_mempolicy, &policy->mode, policy->nodes, NODE_BITS, NULL, 0L));
}

int os_set_policy(const struct policy *policy)
{
    return ERROR_OF(syscall(SYS_set_mempolicy, policy->mode, policy->nodes, NODE_BITS));
}

/* Of an allocator that wants to know of policies, or of libnuma, if the program has one of them. */
#pragma weak set_mempolicy
extern long set_mempolicy(int mode, const unsigned long *nodes, unsigned long bits);

int os_keep_policy(const struct policy *policy)
{
    if (&set_mempolicy)
        return ERROR_OF(set_mempolicy(policy->mode, policy->nodes, NODE_BITS));
    return os_set_policy(policy);
}

int os_prefer(uintptr_t from, uintptr_t to, int node)
{
    struct policy policy = policy_of_node(MPOL_PREFERRED, node);
    return ERROR_OF(
        syscall(SYS_mbind, from, to - from, policy.mode, policy.nodes, NODE_BITS, 0UL));
}

int os_nodes(void *const *pages, int count, int *nodes)
{
    return ERROR_OF(syscall(SYS_move_pages, 0, (long)count, pages, NULL, nodes, 0));
}

int os_move(void *const *pages, int count, int node)
{
    int targets[MAX_PAGES], status[MAX_PAGES];
    for (int i = 0; i < count; i++)
        targets[i] = node;
    return ERROR_OF(
        syscall(SYS_move_pages, 0, (long)count, pages, targets, status, MPOL_MF_MOVE));
}

void *os_allocate(size_t bytes)
{
    int saved = errno;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved;
    return memory == MAP_FAILED ? NULL : memory;
}

void os_free(void *memory, size_t bytes)
{
    (void)ERROR_OF(munmap(memory, bytes));
}

uintptr_t os_page_bytes(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

int os_cpu(void)
{
    int saved = errno;
    int cpu = sched_getcpu();
    errno = saved;
    return cpu;
}

pid_t os_process(void)
{
    return getpid();
}

pid_t os_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

bool os_is_main_thread(void)
{
    return os_thread() == os_process();
}

/* glibc has a function for it only since 2.33, the kernel always. */
static int status_of_file(int file, struct stat *status)
{
    return ERROR_OF(syscall(SYS_fstat, file, status));
}

static struct flock byte_lock(long byte, short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

int os_lock(int file, long byte)
{
    struct flock lock = byte_lock(byte, F_WRLCK);
    int error = ERROR_OF(fcntl(file, F_SETLK, &lock));
    return error == EACCES ? EAGAIN : error;
}

void os_unlock(int file, long byte)
{
    struct flock lock = byte_lock(byte, F_UNLCK);
    (void)ERROR_OF(fcntl(file, F_SETLK, &lock));
}

int os_identity(int file, struct identity *identity)
{
    struct stat data;
    int error = status_of_file(file, &data);
    if (error == 0)
        *identity = (struct identity){data.st_dev, data.st_ino};
    return error;
}

bool os_begins_with(int file, const char *bytes, size_t length)
{
    char start[64];
    return length <= sizeof start && pread(file, start, length, 0) == (ssize_t)length &&
           memcmp(start, bytes, length) == 0;
}

/* The reader may close the FIFO at any time. A SIGPIPE for this thread is blocked and discarded: it would
 * end a program that did not write there. One that was pending before stays. */
static bool write_line(int file, const char *bytes, size_t length)
{
    static const struct timespec at_once;
    sigset_t pipe, before, waiting;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (pthread_sigmask(SIG_BLOCK, &pipe, &before))
        return false;
    bool was_pending = sigpending(&waiting) == 0 && sigismember(&waiting, SIGPIPE) == 1;
    ssize_t written = write(file, bytes, length);
    if (written < 0 && errno == EPIPE && !was_pending)
        while (sigtimedwait(&pipe, NULL, &at_once) < 0 && errno == EINTR)
            continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return written == (ssize_t)length;
}

void os_print(const char *line, size_t length)
{
    int saved = errno;
    write_line(STDERR_FILENO, line, length);
    errno = saved;
}

/* In a directory that others can write to, the FIFOs may be theirs. */
static bool is_private(int folder)
{
    struct stat data;
    return status_of_file(folder, &data) == 0 && (data.st_uid == geteuid() || data.st_uid == 0) &&
           (data.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool write_fifo(int folder, const char *name, const char *line, size_t length)
{
    struct stat data;
    int fifo = openat(folder, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    if (fifo < 0)
        return false;
    bool is_written = status_of_file(fifo, &data) == 0 && S_ISFIFO(data.st_mode) && write_line(fifo, line, length);
    close(fifo);
    return is_written;
}

static int write_all_fifos(DIR *entries, const char *line, size_t length)
{
    int count = 0;
    for (struct dirent *entry; (entry = readdir(entries));) {
        const char *end = strrchr(entry->d_name, '.');
        if (end && strcmp(end, ".fifo") == 0)
            count += write_fifo(dirfd(entries), entry->d_name, line, length);
    }
    return count;
}

int os_write_fifos(const char *path, const char *line, size_t length, int *count)
{
    int saved = errno, error = 0;
    *count = 0;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = folder >= 0 && is_private(folder) ? fdopendir(folder) : NULL;
    if (entries) {
        *count = write_all_fifos(entries, line, length);
        closedir(entries);
    } else if (folder >= 0) {
        error = EPERM;
        close(folder);
    } else {
        error = errno;
    }
    errno = saved;
    return error;
}

uid_t os_user(void)
{
    return geteuid();
}
