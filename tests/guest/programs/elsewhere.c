/* elsewhere parts|few|huge|serve NODE STOP
 *
 * Memory that was touched on NODE by a main thread that is not bound afterwards, until the file STOP is there.
 *   parts    four threads use a quarter each of one array
 *   few      one thread uses all of it
 *   huge     the same, on huge pages
 *   serve    a child answers questions about the array; its parent asks, and checks the answers
 *
 * Prints `process PID` of what uses the memory; at the end whether every word has the value that its user
 * gave it, and for serve how many answers there were and how many of them were wrong. */
#define _GNU_SOURCE
#include "arguments.h"
#include "placement.h"
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define USAGE "usage: elsewhere parts|few|huge|serve NODE STOP"

enum { MOST = 4, HUGE = 2 << 20, BYTES = 16 << 20, WORDS = BYTES / sizeof(uint64_t) };

static uint64_t *words;
static const char *stop;
static int threads;

struct user {
    pthread_t id;
    int index;
    uint64_t rounds;
};

static int is_stopped(void)
{
    return access(stop, F_OK) == 0;
}

static void *user_run(void *argument)
{
    struct user *user = argument;
    int part = WORDS / threads;
    while (!is_stopped()) {
        for (int at = user->index * part; at < (user->index + 1) * part; at++)
            words[at] += at;
        user->rounds++;
    }
    return NULL;
}

static void use_parts(int count)
{
    struct user users[MOST] = {0};
    threads = count;
    printf("process %d\n", getpid());
    fflush(stdout);
    for (int at = 0; at < count; at++) {
        users[at].index = at;
        if (pthread_create(&users[at].id, NULL, user_run, &users[at]))
            fail("cannot create a thread");
    }
    int wrong = 0;
    for (int at = 0; at < count; at++)
        pthread_join(users[at].id, NULL);
    for (int at = 0; at < WORDS; at++)
        wrong += words[at] != users[at / (WORDS / count)].rounds * at + 1;
    printf("wrong %d\n", wrong);
}

static uint64_t answer_of(uint32_t at)
{
    return at * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

/* Each question is answered from a page of its own, and a few others are read. */
static void answer(int socket)
{
    uint32_t at;
    while (read(socket, &at, sizeof at) == sizeof at) {
        uint64_t sum = 0;
        for (uint32_t far = 0; far < 256; far++)
            sum += words[(at + far * 8191) % WORDS];
        uint64_t reply[2] = {words[at], sum};
        if (write(socket, reply, sizeof reply) != sizeof reply)
            _exit(1);
    }
    int wrong = 0;
    for (uint32_t at = 0; at < WORDS; at++)
        wrong += words[at] != answer_of(at);
    printf("wrong %d\n", wrong);
    fflush(stdout);
    _exit(0);
}

static void free_from_cpu(const cpu_set_t *cpus)
{
    if (sched_setaffinity(0, sizeof *cpus, cpus))
        fail("cannot run on all CPUs again: %s", strerror(errno));
}

static void serve(const cpu_set_t *before)
{
    int sockets[2];
    for (uint32_t at = 0; at < WORDS; at++)
        words[at] = answer_of(at);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets))
        fail("no sockets: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        fail("cannot fork: %s", strerror(errno));
    if (child == 0) {
        close(sockets[0]);
        /* The pages are the child's own from now on. */
        for (uint32_t at = 0; at < WORDS; at += PAGE / sizeof *words)
            words[at] = answer_of(at);
        free_from_cpu(before);
        printf("process %d\n", getpid());
        fflush(stdout);
        answer(sockets[1]);
    }
    close(sockets[1]);
    long asked = 0, failed = 0;
    for (uint32_t at = 1; !is_stopped(); at = (at * 1664525u + 1013904223u) % WORDS, asked++) {
        uint64_t reply[2];
        if (write(sockets[0], &at, sizeof at) != sizeof at || read(sockets[0], reply, sizeof reply) != sizeof reply)
            fail("no answer");
        failed += reply[0] != answer_of(at);
    }
    close(sockets[0]);
    waitpid(child, NULL, 0);
    printf("asked %ld\nfailed %ld\n", asked, failed);
}

static void *huge_memory(void)
{
    char *memory = fresh_memory(BYTES + HUGE);
    memory = (char *)(((uintptr_t)memory + HUGE - 1) / HUGE * HUGE);
    if (madvise(memory, BYTES, MADV_HUGEPAGE))
        fail("no huge pages: %s", strerror(errno));
    return memory;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        bad_arguments(USAGE);
    cpu_set_t before;
    if (sched_getaffinity(0, sizeof before, &before))
        fail("cannot ask for the allowed CPUs: %s", strerror(errno));
    bind_to_cpu(first_cpu_of_node(number("NODE", argv[2], 0, MAX_NODES - 1)));
    stop = argv[3];
    words = strcmp(argv[1], "huge") == 0 ? huge_memory() : fresh_memory(BYTES);
    for (int at = 0; at < WORDS; at++)
        words[at] = 1;
    if (strcmp(argv[1], "serve") == 0) {
        serve(&before);
        return 0;
    }
    free_from_cpu(&before);
    if (strcmp(argv[1], "parts") == 0)
        use_parts(MOST);
    else if (strcmp(argv[1], "few") == 0 || strcmp(argv[1], "huge") == 0)
        use_parts(1);
    else
        bad_arguments(USAGE);
    return 0;
}
