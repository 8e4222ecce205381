/* counted COMMAND WORDS...
 *
 * Runs the command and waits for its end, and lets the simulated machine count all of it, and nothing else
 * but a fork: it ends with the command's status. */
#include "numakit-mark.h"
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **words)
{
    int status = 0;
    if (count < 2)
        return 2;
    NUMAKIT_MARK_BEGIN();
    pid_t child = fork();
    if (child == 0) {
        execvp(words[1], words + 1);
        _exit(127);
    }
    waitpid(child, &status, 0);
    NUMAKIT_MARK_END();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
