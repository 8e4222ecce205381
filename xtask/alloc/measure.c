// Runs a program, with a library preloaded, and prints what it took. Small itself: a program's peak of resident memory
// counts what its parent had when it started.
//
// Usage: measure LIBRARY|- PROGRAM [ARGUMENT...]
// Prints, after the program's output, `cpu_us` (user and system), `rss_kib` (the peak), `faults`. Its children that it
// waited for count too. The status is the program's.

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "Usage: measure LIBRARY|- PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    const pid_t child = fork();
    if (child == 0) {
        if (strcmp(argv[1], "-"))
            setenv("LD_PRELOAD", argv[1], 1);
        else
            unsetenv("LD_PRELOAD");
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) != child)
        return 1;
    const long user = usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec;
    const long system = usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec;
    printf("cpu_us %ld\nrss_kib %ld\nfaults %ld\n", user + system, usage.ru_maxrss, usage.ru_minflt + usage.ru_majflt);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
