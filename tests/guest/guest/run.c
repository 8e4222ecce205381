/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs one step in the guest: `run STEP RESULT`.
 *
 * STEP has the files `arguments`, `environment` and `folder`, strings that end with a NUL, and `stream`
 * if output is wanted while it runs. The command runs in `folder`. Left in RESULT: `stdout`, `stderr`, and `status`, which is
 * "exit N" or "signal N". The command sees pipes or files, never a terminal. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define MAX_WORDS 4096

/* One output of the command: where it comes from, the file and the serial line that it goes to. */
struct output {
    int from, file, line;
};

static int opened(const char *folder, const char *name, int flags)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, flags | O_CLOEXEC, 0644);
}

/* The strings of a file, with a NULL after the last. */
static char **strings(const char *folder, const char *name)
{
    static char *none[] = {NULL};
    int file = opened(folder, name, O_RDONLY);
    off_t size = file < 0 ? 0 : lseek(file, 0, SEEK_END);
    char *text = malloc((size_t)size + 1), **list = calloc(MAX_WORDS + 1, sizeof *list);
    if (size <= 0 || !text || !list || pread(file, text, (size_t)size, 0) != size)
        return none;
    text[size] = 0;
    int count = 0;
    for (char *at = text; at < text + size && count < MAX_WORDS; at += strlen(at) + 1)
        list[count++] = at;
    return list;
}

/* Bytes pass a serial line unchanged. */
static int serial(const char *path)
{
    struct termios settings;
    int line = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (line >= 0 && tcgetattr(line, &settings) == 0) {
        cfmakeraw(&settings);
        cfsetspeed(&settings, B115200);
        settings.c_cflag |= CLOCAL;
        tcsetattr(line, TCSANOW, &settings);
    }
    return line;
}

static void put(int to, const char *bytes, ssize_t count)
{
    while (to >= 0 && count > 0) {
        ssize_t written = write(to, bytes, (size_t)count);
        if (written < 0 && errno != EINTR)
            return;
        if (written > 0) {
            bytes += written;
            count -= written;
        }
    }
}

/* Passes on what is there; false when there is no more to come. */
static int pass(struct output *output)
{
    static char bytes[65536];
    ssize_t count;
    while ((count = read(output->from, bytes, sizeof bytes)) > 0) {
        put(output->file, bytes, count);
        put(output->line, bytes, count);
    }
    return count < 0 && (errno == EAGAIN || errno == EINTR);
}

static void become(char **words, char **environment, const char *folder)
{
    if (!folder || chdir(folder) != 0)
        perror(folder ? folder : "no folder");
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    put(score, "0", 1);
    clearenv();
    for (char **pair = environment; *pair; pair++)
        putenv(*pair);
    if (words[0])
        execvp(words[0], words);
    int status = errno == ENOENT || !words[0] ? 127 : 126;
    fprintf(stderr, "%s: %s\n", words[0] ? words[0] : "no command", strerror(errno));
    _exit(status);
}

/* Until the command has ended; a child that it leaves behind may keep the pipes open. */
static int waited(pid_t child, struct output outputs[2])
{
    int status = 0, ended = 0, open[2] = {1, 1};
    while (!ended) {
        struct pollfd wait[2];
        for (int k = 0; k < 2; k++)
            wait[k] = (struct pollfd){open[k] ? outputs[k].from : -1, POLLIN, 0};
        poll(wait, 2, 20);
        ended = waitpid(child, &status, WNOHANG) == child;
        for (int k = 0; k < 2; k++)
            open[k] = open[k] && pass(&outputs[k]);
    }
    for (int k = 0; k < 2; k++)
        if (outputs[k].line >= 0)
            tcdrain(outputs[k].line);
    return status;
}

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    const char *step = arguments[1], *result = arguments[2];
    int flags = O_WRONLY | O_CREAT | O_TRUNC;
    struct output outputs[2] = {{-1, opened(result, "stdout", flags), -1},
                                {-1, opened(result, "stderr", flags), -1}};
    int streams = opened(step, "stream", O_RDONLY) >= 0, ends[2][2], status = 0;
    if (streams)
        for (int k = 0; k < 2; k++) {
            outputs[k].line = serial(k == 0 ? "/dev/ttyS1" : "/dev/ttyS2");
            if (pipe2(ends[k], O_CLOEXEC) != 0)
                return 1;
            outputs[k].from = ends[k][0];
            fcntl(outputs[k].from, F_SETFL, O_NONBLOCK);
        }
    char **words = strings(step, "arguments"), **environment = strings(step, "environment");
    const char *folder = strings(step, "folder")[0];
    pid_t child = fork();
    if (child == 0) {
        for (int k = 0; k < 2; k++)
            dup2(streams ? ends[k][1] : outputs[k].file, k + 1);
        dup2(open("/dev/null", O_RDONLY), 0);
        become(words, environment, folder);
    }
    if (child < 0)
        return 1;
    if (streams) {
        close(ends[0][1]);
        close(ends[1][1]);
        status = waited(child, outputs);
    } else if (waitpid(child, &status, 0) != child)
        return 1;
    int file = opened(result, "status", flags);
    int by_signal = WIFSIGNALED(status);
    dprintf(file, "%s %d\n", by_signal ? "signal" : "exit", by_signal ? WTERMSIG(status) : WEXITSTATUS(status));
    return 0;
}
