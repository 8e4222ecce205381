/* whole COMMAND [ARGUMENT...]
 *
 * Runs the command between a begin and an end marker, so that all of it counts: its start, and what
 * started it. */
#define _GNU_SOURCE
#include "arguments.h"
#include "numakit-mark.h"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define USAGE "usage: whole COMMAND [ARGUMENT...]"

int main(int count, char **words)
{
    pid_t child;
    int status;
    if (count < 2)
        bad_arguments(USAGE);
    NUMAKIT_MARK_BEGIN();
    int wrong = posix_spawnp(&child, words[1], NULL, NULL, words + 1, environ);
    if (wrong)
        fail("cannot start %s: %s", words[1], strerror(wrong));
    if (waitpid(child, &status, 0) != child)
        fail("cannot wait for %s", words[1]);
    NUMAKIT_MARK_END();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
