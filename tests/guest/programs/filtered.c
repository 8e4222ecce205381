/* filtered CMD ARGS
 *
 * Runs a command under the seccomp filter that Docker and containerd start containers with, as far as it
 * matters here: memory policies, moving pages and performance counters are refused with EPERM, clone3 with
 * ENOSYS. Asking where pages are is refused too, except with the flag MPOL_MF_MOVE, by which the programs
 * of these tests look at the result. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define REFUSE(errno) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (errno))
/* Refuses one system call. */
#define WITHOUT(call, errno) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), REFUSE(errno)

#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif

int main(int count, char **words)
{
    static struct sock_filter filter[] = {
        LOAD(nr),
        WITHOUT(SYS_set_mempolicy, EPERM),
        WITHOUT(SYS_get_mempolicy, EPERM),
        WITHOUT(SYS_mbind, EPERM),
        WITHOUT(SYS_set_mempolicy_home_node, EPERM),
        WITHOUT(SYS_migrate_pages, EPERM),
        WITHOUT(SYS_perf_event_open, EPERM),
        WITHOUT(SYS_userfaultfd, EPERM),
        WITHOUT(SYS_clone3, ENOSYS),
        /* move_pages: the flag, and no nodes to move to (the lower half of the pointer is enough). */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_move_pages, 0, 5),
        LOAD(args[5]),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MPOL_MF_MOVE, 0, 2),
        LOAD(args[3]),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        REFUSE(EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (count < 2) {
        fprintf(stderr, "usage: filtered CMD ARGS\n");
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        fprintf(stderr, "filtered: cannot install the filter: %s\n", strerror(errno));
        return 2;
    }
    execvp(words[1], words + 1);
    fprintf(stderr, "filtered: %s: %s\n", words[1], strerror(errno));
    return 127;
}
