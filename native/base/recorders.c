/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "recorders.h"
#include "call.h"
#include "os.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_LABEL = 200 };

/* The reader may close the FIFO at any time. A SIGPIPE for this thread is blocked and discarded: it would
 * end a program that did not write there. One that was pending before stays. */
bool os_write_line(int file, const char *bytes, size_t length)
{
    static const struct timespec at_once;
    sigset_t pipe, before, waiting;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigemptyset(&waiting);
    os_mask_signals(SIG_BLOCK, &pipe, &before);
    CALL(SYS_rt_sigpending, &waiting, KERNEL_SET_BYTES);
    ssize_t written = write(file, bytes, length);
    if (written < 0 && errno == EPIPE && sigismember(&waiting, SIGPIPE) != 1)
        while (CALL(SYS_rt_sigtimedwait, &pipe, NULL, &at_once, KERNEL_SET_BYTES) == -EINTR)
            continue;
    os_mask_signals(SIG_SETMASK, &before, NULL);
    return written == (ssize_t)length;
}

/* In a directory that others can write to, the FIFOs may be theirs. */
static bool is_private(int folder)
{
    struct stat data;
    return CALL(SYS_fstat, folder, &data) == 0 && (data.st_uid == geteuid() || data.st_uid == 0) &&
           (data.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool write_fifo(int folder, const char *name, const char *line, size_t length)
{
    struct stat data;
    int fifo = openat(folder, name, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
    if (fifo < 0)
        return false;
    bool is_written = CALL(SYS_fstat, fifo, &data) == 0 && S_ISFIFO(data.st_mode) && os_write_line(fifo, line, length);
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

/* Writes the line into every FIFO in the directory whose name ends in ".fifo" and that has a reader, and counts those that
 * accepted it. EPERM if the directory belongs to another user, or others may write to it. */
static int write_fifos(const char *path, const char *line, size_t length, int *count)
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

/* The directory that recorders choose. */
static void find_folder(char *path, size_t room)
{
    const char *folder = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
    if (folder && *folder == '/')
        snprintf(path, room, "%s/numakit", folder);
    else if (geteuid() == 0)
        snprintf(path, room, "/run/numakit");
    else
        snprintf(path, room, "%s/numakit-%u", temporary && *temporary ? temporary : "/tmp", (unsigned)geteuid());
}

int recorders_label(const char *text, const char *ending, struct refusal *refusal)
{
    char line[MAX_LABEL + 32];
    int count, length = snprintf(line, sizeof line, "label %.*s%.20s\n", MAX_LABEL, text, ending);
    for (int i = 0; i + 1 < length; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    find_folder(refusal->folder, sizeof refusal->folder);
    refusal->error = write_fifos(refusal->folder, line, (size_t)length, &count);
    /* No directory means that nothing records. */
    if (refusal->error == ENOENT)
        refusal->error = 0;
    return count;
}
