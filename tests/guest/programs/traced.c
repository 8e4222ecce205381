/* traced PID runs|stopped STOP
 *
 * Traces the first thread of a process until the file STOP is there, and prints `traced`; `stopped`: as a debugger that has
 * stopped it. The end of this program detaches. */
#define _GNU_SOURCE
#include "arguments.h"
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words)
{
    if (count != 4)
        bad_arguments("usage: traced PID runs|stopped STOP");
    pid_t process = (pid_t)number("PID", words[1], 1, 1 << 22);
    int is_stopped = strcmp(words[2], "stopped") == 0;
    if (ptrace(is_stopped ? PTRACE_ATTACH : PTRACE_SEIZE, process, NULL, NULL))
        fail("cannot trace %d", process);
    if (is_stopped && waitpid(process, NULL, __WALL) != process)
        fail("%d does not stop", process);
    puts("traced");
    fflush(stdout);
    while (access(words[3], F_OK)) {
        int status;
        pid_t stopped = is_stopped ? 0 : waitpid(process, &status, WNOHANG | __WALL);
        if (stopped == process && WIFSTOPPED(status))
            ptrace(PTRACE_CONT, process, NULL, (void *)(long)(status >> 16 ? 0 : WSTOPSIG(status)));
        usleep(1000);
    }
    return 0;
}
