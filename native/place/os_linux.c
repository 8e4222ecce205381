/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What no other library asks of the kernel: masks, memory policies, pages, locks of a file. */
#define _GNU_SOURCE
#include "os.h"
#include "base/call.h"
#include "base/recorders.h"
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>

/* The result of a call as an errno. */
static int error_of(long result)
{
    return result < 0 ? (int)-result : 0;
}

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
    return error_of(CALL(SYS_sched_getaffinity, thread, sizeof *mask, mask));
}

int os_set_mask(pid_t thread, const struct cpus *mask)
{
    return os_set_mask_of(thread, sizeof *mask, mask);
}

int os_set_mask_of(pid_t thread, size_t bytes, const void *mask)
{
    return error_of(CALL(SYS_sched_setaffinity, thread, bytes, mask));
}

int os_policy(struct policy *policy)
{
    memset(policy, 0, sizeof *policy);
    return error_of(CALL(SYS_get_mempolicy, &policy->mode, policy->nodes, NODE_BITS, NULL, 0L));
}

int os_set_policy(const struct policy *policy)
{
    return error_of(CALL(SYS_set_mempolicy, policy->mode, policy->nodes, NODE_BITS));
}

/* Of an allocator that wants to know of policies, or of libnuma, if the program has one of them. */
#pragma weak set_mempolicy
extern long set_mempolicy(int mode, const unsigned long *nodes, unsigned long bits);

int os_keep_policy(const struct policy *policy)
{
    if (!&set_mempolicy)
        return os_set_policy(policy);
    int before = errno, error = set_mempolicy(policy->mode, policy->nodes, NODE_BITS) < 0 ? errno : 0;
    errno = before;
    return error;
}

int os_prefer(uintptr_t from, uintptr_t to, int node)
{
    struct policy policy = policy_of_node(MPOL_PREFERRED, node);
    return error_of(CALL(SYS_mbind, from, to - from, policy.mode, policy.nodes, NODE_BITS, 0UL));
}

int os_nodes(void *const *pages, int count, int *nodes)
{
    return error_of(CALL(SYS_move_pages, 0, (long)count, pages, NULL, nodes, 0));
}

int os_move(void *const *pages, int count, int node)
{
    int targets[MAX_PAGES], status[MAX_PAGES];
    for (int i = 0; i < count; i++)
        targets[i] = node;
    return error_of(CALL(SYS_move_pages, 0, (long)count, pages, targets, status, MPOL_MF_MOVE));
}

int os_cpu(void)
{
    int saved = errno;
    int cpu = sched_getcpu();
    errno = saved;
    return cpu;
}

bool os_is_main_thread(void)
{
    return os_thread() == os_process();
}

static struct flock byte_lock(long byte, short type)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

int os_lock(int file, long byte)
{
    struct flock lock = byte_lock(byte, F_WRLCK);
    int error = error_of(CALL(SYS_fcntl, file, F_SETLK, &lock));
    return error == EACCES ? EAGAIN : error;
}

void os_unlock(int file, long byte)
{
    struct flock lock = byte_lock(byte, F_UNLCK);
    CALL(SYS_fcntl, file, F_SETLK, &lock);
}

int os_identity(int file, struct identity *identity)
{
    struct stat data;
    int error = error_of(CALL(SYS_fstat, file, &data));
    if (error == 0)
        *identity = (struct identity){data.st_dev, data.st_ino};
    return error;
}

bool os_begins_with(int file, const char *bytes, size_t length)
{
    char start[64];
    return length <= sizeof start && CALL(SYS_pread64, file, start, length, 0) == (long)length &&
           memcmp(start, bytes, length) == 0;
}

void os_print(const char *line, size_t length)
{
    int saved = errno;
    os_write_line(STDERR_FILENO, line, length);
    errno = saved;
}
