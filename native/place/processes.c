/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fork is not here, as a handler is called in its child; _Fork, which calls none, is in base/begin.c; nor is
 * vfork, as its child can only call exec. */
#define _GNU_SOURCE
#include "processes.h"
#include "base/next.h"
#include "children.h"
#include <aio.h>
#include <errno.h>
#include <mqueue.h>
#include <netdb.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

/* Missing in the headers of some C libraries. */
int execveat(int folder, const char *path, char *const words[], char *const environment[], int flags);
int pidfd_spawn(int *child, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const words[], char *const environment[]);
int pidfd_spawnp(int *child, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const words[], char *const environment[]);

/* Looked up early, as they may be called in signal handlers and in children that share their parent's
 * memory. */
#define FIRST_FUNCTIONS(DO)                                                                        \
    DO(execve) DO(execvp) DO(execvpe) DO(fexecve) DO(execveat) DO(clone)
#define LATER_FUNCTIONS(DO)                                                                        \
    DO(posix_spawn) DO(posix_spawnp) DO(pidfd_spawn) DO(pidfd_spawnp) DO(system) DO(popen) DO(wordexp) \
    DO(timer_create) DO(mq_notify) DO(getaddrinfo_a) DO(aio_read) DO(aio_read64) DO(aio_write)     \
    DO(aio_write64) DO(aio_fsync) DO(aio_fsync64) DO(lio_listio) DO(lio_listio64)

#define DEFINE(name) static NEXT_DEFINE(name)
FIRST_FUNCTIONS(DEFINE)
LATER_FUNCTIONS(DEFINE)

void processes_begin(void)
{
    FIRST_FUNCTIONS(NEXT_LOOK_UP)
}

/* Its result, called while the thread has the state to inherit; `failed` if there is no such function. */
#define AROUND(before, failed, name, ...)                                                          \
    ({                                                                                             \
        struct saved_state saved;                                                                  \
        __typeof__(&name) function = NEXT(name);                                                   \
        __typeof__(name(__VA_ARGS__)) value = failed;                                              \
        before(&saved);                                                                            \
        if (function)                                                                              \
            value = function(__VA_ARGS__);                                                         \
        else                                                                                       \
            errno = ENOSYS;                                                                        \
        children_after(&saved);                                                                    \
        value;                                                                                     \
    })

PUBLIC int execve(const char *path, char *const words[], char *const environment[])
{
    return AROUND(exec_before, -1, execve, path, words, environment);
}

PUBLIC int execv(const char *path, char *const words[])
{
    return AROUND(exec_before, -1, execve, path, words, environ);
}

PUBLIC int execvp(const char *file, char *const words[])
{
    return AROUND(exec_before, -1, execvp, file, words);
}

PUBLIC int execvpe(const char *file, char *const words[], char *const environment[])
{
    return AROUND(exec_before, -1, execvpe, file, words, environment);
}

PUBLIC int fexecve(int file, char *const words[], char *const environment[])
{
    return AROUND(exec_before, -1, fexecve, file, words, environment);
}

PUBLIC int execveat(int folder, const char *path, char *const words[], char *const environment[], int flags)
{
    return AROUND(exec_before, -1, execveat, folder, path, words, environment, flags);
}

/* The number of words before the NULL. */
static size_t count_words(va_list *words)
{
    size_t count = 1;
    while (va_arg(*words, char *))
        count++;
    return count;
}

static void take_words(const char *first, va_list *words, size_t count, const char **list)
{
    list[0] = first;
    for (size_t at = 1; at <= count; at++)
        list[at] = va_arg(*words, const char *);
}

/* The words of a call as an array on the stack, since a child that shares its parent's memory may not
 * allocate; `rest` is after the NULL. */
#define LIST_OF(first, rest)                                                                       \
    va_list rest;                                                                                  \
    va_start(rest, first);                                                                         \
    size_t count = count_words(&rest);                                                             \
    va_end(rest);                                                                                  \
    const char *list[count + 1];                                                                   \
    va_start(rest, first);                                                                         \
    take_words(first, &rest, count, list)

PUBLIC int execl(const char *path, const char *first, ...)
{
    LIST_OF(first, rest);
    va_end(rest);
    return execv(path, (char *const *)list);
}

PUBLIC int execlp(const char *file, const char *first, ...)
{
    LIST_OF(first, rest);
    va_end(rest);
    return execvp(file, (char *const *)list);
}

PUBLIC int execle(const char *path, const char *first, ...)
{
    LIST_OF(first, rest);
    char *const *environment = va_arg(rest, char *const *);
    va_end(rest);
    return execve(path, (char *const *)list, environment);
}

/* Arguments that the caller did not give are undefined here too, and neither function uses them. */
PUBLIC int clone(int (*begin)(void *), void *stack, int flags, void *argument, ...)
{
    va_list rest;
    va_start(rest, argument);
    void *parent = va_arg(rest, void *), *storage = va_arg(rest, void *), *child = va_arg(rest, void *);
    va_end(rest);
    return AROUND(children_before, -1, clone, begin, stack, flags, argument, parent, storage, child);
}

PUBLIC int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const words[], char *const environment[])
{
    return AROUND(children_before, ENOSYS, posix_spawn, child, path, actions, attributes, words, environment);
}

PUBLIC int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const words[], char *const environment[])
{
    return AROUND(children_before, ENOSYS, posix_spawnp, child, file, actions, attributes, words, environment);
}

PUBLIC int pidfd_spawn(int *child, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const words[], char *const environment[])
{
    return AROUND(children_before, ENOSYS, pidfd_spawn, child, path, actions, attributes, words, environment);
}

PUBLIC int pidfd_spawnp(int *child, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const words[], char *const environment[])
{
    return AROUND(children_before, ENOSYS, pidfd_spawnp, child, file, actions, attributes, words, environment);
}

PUBLIC int system(const char *command)
{
    return AROUND(children_before, -1, system, command);
}

PUBLIC FILE *popen(const char *command, const char *mode)
{
    return AROUND(children_before, NULL, popen, command, mode);
}

PUBLIC int wordexp(const char *words, wordexp_t *found_words, int flags)
{
    return AROUND(children_before, WRDE_NOSPACE, wordexp, words, found_words, flags);
}

/* SIGEV_THREAD: the first call starts a thread, which starts all others. */
PUBLIC int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
    return AROUND(children_before, -1, timer_create, clock, event, timer);
}

PUBLIC int mq_notify(mqd_t queue, const struct sigevent *event)
{
    return AROUND(children_before, -1, mq_notify, queue, event);
}

PUBLIC int getaddrinfo_a(int mode, struct gaicb *list[], int count, struct sigevent *event)
{
    return AROUND(children_before, EAI_SYSTEM, getaddrinfo_a, mode, list, count, event);
}

PUBLIC int aio_read(struct aiocb *request)
{
    return AROUND(children_before, -1, aio_read, request);
}

PUBLIC int aio_read64(struct aiocb64 *request)
{
    return AROUND(children_before, -1, aio_read64, request);
}

PUBLIC int aio_write(struct aiocb *request)
{
    return AROUND(children_before, -1, aio_write, request);
}

PUBLIC int aio_write64(struct aiocb64 *request)
{
    return AROUND(children_before, -1, aio_write64, request);
}

PUBLIC int aio_fsync(int operation, struct aiocb *request)
{
    return AROUND(children_before, -1, aio_fsync, operation, request);
}

PUBLIC int aio_fsync64(int operation, struct aiocb64 *request)
{
    return AROUND(children_before, -1, aio_fsync64, operation, request);
}

PUBLIC int lio_listio(int mode, struct aiocb *const list[], int count, struct sigevent *event)
{
    return AROUND(children_before, -1, lio_listio, mode, list, count, event);
}

PUBLIC int lio_listio64(int mode, struct aiocb64 *const list[], int count, struct sigevent *event)
{
    return AROUND(children_before, -1, lio_listio64, mode, list, count, event);
}
