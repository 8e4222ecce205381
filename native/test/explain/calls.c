/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* calls THREADS CALLS [NAME]     makes each kind of blocking call so often in each thread, and prints how many returned
 * EINTR. Status 1 if any did. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* What a thread's calls work on: nothing ever arrives. */
struct own {
    int pipe[2], sockets[2], epoll, messages, semaphores;
    mqd_t queue;
    sem_t semaphore;
    pthread_mutex_t lock;
    pthread_cond_t condition;
};

enum { SHORT_NS = 20000 };
static const struct timespec SHORT = {0, SHORT_NS};

static struct timespec soon(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += SHORT_NS;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

static int call_poll(struct own *own)
{
    struct pollfd file = {own->pipe[0], POLLIN, 0};
    return poll(&file, 1, 1);
}

static int call_ppoll(struct own *own)
{
    struct pollfd file = {own->pipe[0], POLLIN, 0};
    return ppoll(&file, 1, &SHORT, NULL);
}

static int call_select(struct own *own)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(own->pipe[0], &set);
    struct timeval time = {0, SHORT_NS / 1000};
    return select(own->pipe[0] + 1, &set, NULL, NULL, &time);
}

static int call_pselect(struct own *own)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(own->pipe[0], &set);
    return pselect(own->pipe[0] + 1, &set, NULL, NULL, &SHORT, NULL);
}

static int call_epoll_wait(struct own *own)
{
    struct epoll_event event;
    return epoll_wait(own->epoll, &event, 1, 1);
}

static int call_nanosleep(struct own *own)
{
    (void)own;
    return nanosleep(&SHORT, NULL);
}

static int call_clock_nanosleep(struct own *own)
{
    (void)own;
    struct timespec until = soon(CLOCK_MONOTONIC);
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    return errno ? -1 : 0;
}

static int call_sem_timedwait(struct own *own)
{
    struct timespec until = soon(CLOCK_REALTIME);
    return sem_timedwait(&own->semaphore, &until);
}

static int call_cond_timedwait(struct own *own)
{
    struct timespec until = soon(CLOCK_REALTIME);
    pthread_mutex_lock(&own->lock);
    errno = pthread_cond_timedwait(&own->condition, &own->lock, &until);
    int saved = errno;
    pthread_mutex_unlock(&own->lock);
    errno = saved;
    return errno ? -1 : 0;
}

static int call_futex(struct own *own)
{
    (void)own;
    int word = 0;
    return (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &SHORT, NULL, 0);
}

static int call_recv(struct own *own)
{
    char byte;
    return (int)recv(own->sockets[0], &byte, 1, 0);
}

/* Its wait has no timeout: the message comes from this thread. */
static int call_msgrcv(struct own *own)
{
    struct {
        long type;
        char text[8];
    } message = {1, ""};
    if (msgsnd(own->messages, &message, sizeof message.text, 0))
        return -1;
    return (int)msgrcv(own->messages, &message, sizeof message.text, 0, 0);
}

static int call_semtimedop(struct own *own)
{
    struct sembuf operation = {0, -1, 0};
    return semtimedop(own->semaphores, &operation, 1, &SHORT);
}

static int call_sigtimedwait(struct own *own)
{
    (void)own;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &SHORT);
}

static int call_mq_timedreceive(struct own *own)
{
    char text[8];
    struct timespec until = soon(CLOCK_REALTIME);
    if (own->queue < 0)
        return 0;
    return (int)mq_timedreceive(own->queue, text, sizeof text, NULL, &until);
}

static const struct kind {
    const char *name;
    int (*call)(struct own *);
} KINDS[] = {
    {"poll", call_poll},
    {"ppoll", call_ppoll},
    {"select", call_select},
    {"pselect", call_pselect},
    {"epoll_wait", call_epoll_wait},
    {"nanosleep", call_nanosleep},
    {"clock_nanosleep", call_clock_nanosleep},
    {"sem_timedwait", call_sem_timedwait},
    {"cond_timedwait", call_cond_timedwait},
    {"futex", call_futex},
    {"recv", call_recv},
    {"msgrcv", call_msgrcv},
    {"semtimedop", call_semtimedop},
    {"sigtimedwait", call_sigtimedwait},
    {"mq_timedreceive", call_mq_timedreceive},
};

static const struct kind *kind;
static long calls;
static _Atomic long interrupted;

static void own_begin(struct own *own)
{
    char name[64];
    struct timeval time = {0, SHORT_NS / 1000};
    struct epoll_event event = {.events = EPOLLIN};
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    if (pipe(own->pipe) || socketpair(AF_UNIX, SOCK_STREAM, 0, own->sockets))
        exit(2);
    setsockopt(own->sockets[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    own->epoll = epoll_create1(0);
    epoll_ctl(own->epoll, EPOLL_CTL_ADD, own->pipe[0], &event);
    own->messages = msgget(IPC_PRIVATE, 0600);
    own->semaphores = semget(IPC_PRIVATE, 1, 0600);
    snprintf(name, sizeof name, "/numakit-calls-%d", (int)syscall(SYS_gettid));
    own->queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
    mq_unlink(name);
    sem_init(&own->semaphore, 0, 0);
    pthread_mutex_init(&own->lock, NULL);
    pthread_cond_init(&own->condition, NULL);
}

static void own_end(struct own *own)
{
    close(own->pipe[0]);
    close(own->pipe[1]);
    close(own->sockets[0]);
    close(own->sockets[1]);
    close(own->epoll);
    msgctl(own->messages, IPC_RMID, NULL);
    semctl(own->semaphores, 0, IPC_RMID);
    if (own->queue >= 0)
        mq_close(own->queue);
}

static void *make_calls(void *unused)
{
    (void)unused;
    struct own own;
    own_begin(&own);
    for (long i = 0; i < calls; i++) {
        errno = 0;
        if (kind->call(&own) < 0 && errno == EINTR)
            interrupted++;
    }
    own_end(&own);
    return NULL;
}

int main(int count, char **words)
{
    if (count < 3)
        return 2;
    int threads = atoi(words[1]);
    long sum = 0;
    calls = atol(words[2]);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
        pthread_t ids[64];
        if (count > 3 && strcmp(words[3], KINDS[i].name))
            continue;
        kind = &KINDS[i];
        interrupted = 0;
        for (int thread = 0; thread < threads && thread < 64; thread++)
            if (pthread_create(&ids[thread], NULL, make_calls, NULL))
                return 2;
        for (int thread = 0; thread < threads && thread < 64; thread++)
            pthread_join(ids[thread], NULL);
        printf("%s %ld of %ld\n", kind->name, interrupted, threads * calls);
        fflush(stdout);
        sum += interrupted;
    }
    return sum != 0;
}
