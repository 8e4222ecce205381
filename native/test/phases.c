/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Output of the library: labels for recorders, messages on standard error. */
#define _GNU_SOURCE
#include "check.h"
#include <fcntl.h>
#include <numaplace.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef PRELOADED
#pragma weak numaplace_phase_begin
#pragma weak numaplace_phase_end
#endif

/* A reader that closes the FIFO just before a write; -1 for none. */
static int leaves = -1;

/* Replaces the C library's function, also for the library under test. */
ssize_t write(int file, const void *bytes, size_t count)
{
    if (leaves >= 0)
        close(leaves);
    leaves = -1;
    return syscall(SYS_write, file, bytes, count);
}

struct folders {
    char top[32], own[64], fifo[80];
};

/* A folder of recorders with a FIFO in it. */
static struct folders folders_new(void)
{
    struct folders made = {.top = "/tmp/numaplace-XXXXXX"};
    CHECK(mkdtemp(made.top));
    snprintf(made.own, sizeof made.own, "%s/numakit", made.top);
    snprintf(made.fifo, sizeof made.fifo, "%s/1.fifo", made.own);
    CHECK(mkdir(made.own, 0700) == 0 && mkfifo(made.fifo, 0600) == 0);
    setenv("XDG_RUNTIME_DIR", made.top, 1);
    return made;
}

static void folders_end(const struct folders *made)
{
    unlink(made->fifo);
    rmdir(made->own);
    rmdir(made->top);
}

static int reader_of(const struct folders *made)
{
    int reader = open(made->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK(reader >= 0);
    return reader;
}

static bool pipe_signal_waits(void)
{
    sigset_t waiting;
    CHECK(sigpending(&waiting) == 0);
    return sigismember(&waiting, SIGPIPE) == 1;
}

static bool pipe_signal_is_blocked(void)
{
    sigset_t blocked;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
    return sigismember(&blocked, SIGPIPE) == 1;
}

static void phases_are_told(void)
{
    struct folders made = folders_new();
    char line[300] = "";
    CHECK(numaplace_phase_begin("nobody listens") == 0);
    int reader = reader_of(&made);
    CHECK(numaplace_phase_begin("one\ntwo") == 1 && numaplace_phase_end("one") == 1);
    CHECK(read(reader, line, sizeof line - 1) > 0);
    CHECK(strcmp(line, "label one two\nlabel one end\n") == 0);
    close(reader);
    folders_end(&made);
    CHECK(numaplace_phase_begin("no folder") == 0);
}

static void a_reader_that_leaves_ends_nobody(void)
{
    struct folders made = folders_new();
    leaves = reader_of(&made);
    CHECK(numaplace_phase_begin("gone") == 0);
    CHECK(leaves == -1 && !pipe_signal_waits() && !pipe_signal_is_blocked());
    /* A signal that was pending before belongs to the program. */
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    CHECK(pthread_sigmask(SIG_BLOCK, &pipe, NULL) == 0 && raise(SIGPIPE) == 0);
    leaves = reader_of(&made);
    CHECK(numaplace_phase_end("gone") == 0);
    CHECK(leaves == -1 && pipe_signal_waits() && pipe_signal_is_blocked());
    folders_end(&made);
}

static void folders_of_others_are_left_alone(void)
{
    struct folders made = folders_new();
    int reader = reader_of(&made);
    CHECK(numaplace_phase_begin("mine") == 1);
    CHECK(chmod(made.own, 0770) == 0 && numaplace_phase_begin("the group's") == 0);
    CHECK(chmod(made.own, 0707) == 0 && numaplace_phase_begin("everybody's") == 0);
    CHECK(chmod(made.own, 0755) == 0 && numaplace_phase_begin("mine") == 1);
    /* By root only. */
    if (geteuid() == 0) {
        CHECK(chown(made.own, 1, 0) == 0 && numaplace_phase_begin("another's") == 0);
        CHECK(chown(made.own, 0, 0) == 0 && numaplace_phase_begin("mine") == 1);
    }
    char moved[80];
    snprintf(moved, sizeof moved, "%s/moved", made.top);
    CHECK(rename(made.own, moved) == 0 && symlink(moved, made.own) == 0);
    CHECK(numaplace_phase_begin("a link") == 0);
    CHECK(unlink(made.own) == 0 && rename(moved, made.own) == 0);
    /* Root's recorders of this machine are in a folder that no variable moves. */
    if (geteuid() != 0) {
        CHECK(chdir(made.top) == 0 && setenv("XDG_RUNTIME_DIR", ".", 1) == 0);
        CHECK(setenv("TMPDIR", "/nowhere", 1) == 0 && numaplace_phase_begin("wherever this is") == 0);
    }
    close(reader);
    folders_end(&made);
}

static void lines_for_nobody_end_nobody(void)
{
    int ends[2];
    struct waiting one;
    CHECK(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    waiting_begin(&one, NULL);
    waiting_end(&one);
    CHECK(!pipe_signal_waits());
}

const struct test PHASES[] = {
    {"phases_are_told", phases_are_told, {0}},
    {"a_reader_that_leaves_ends_nobody", a_reader_that_leaves_ends_nobody, {0}},
    {"folders_of_others_are_left_alone", folders_of_others_are_left_alone, {0}},
    {"lines_for_nobody_end_nobody", lines_for_nobody_end_nobody, {"NUMA_VERBOSE=1"}},
    {0},
};
