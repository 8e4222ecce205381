/* holders sleep RUN MILLISECONDS HOW     a program of a run; HOW: plain, close, daemon or apart
 * holders stress LAUNCHES SEED           launches many by `numa run`, kills at random, and checks
 *
 * `close` closes the descriptor that holds the cores, `daemon` leaves a child behind in a session
 * of its own, `apart` does both. Masks are widened and the registry's file is removed as well. The
 * check asks the kernel, not the registry: at every look no two runs that live may have been given
 * the same CPU, as their environments say, and `numa ps` must know the CPUs of all. */
#define _GNU_SOURCE
#include "arguments.h"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REGISTRY "/dev/shm/numakit-cores"
#define USAGE "usage: holders sleep RUN MILLISECONDS HOW | holders stress LAUNCHES SEED"
#define MAX 256
#define AT_ONCE 5
#define EXITING 0x4

static void rest(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        ;
}

static int program(const char *milliseconds, const char *how)
{
    long time = number("MILLISECONDS", milliseconds, 0, 1000000);
    int is_apart = !strcmp(how, "apart");
    const char *hold = getenv("NUMA_HOLD");
    if (!hold)
        fail("NUMA_HOLD is not set");
    int descriptor = (int)number("NUMA_HOLD", hold, 100, 1000);
    if (fcntl(descriptor, F_GETFD) < 0)
        fail("descriptor %d is not open", descriptor);
    if (is_apart || !strcmp(how, "close"))
        close(descriptor);
    if ((is_apart || !strcmp(how, "daemon")) && fork() == 0) {
        setsid();
        time *= 2;
    }
    rest(time);
    return 0;
}

/* A process of a run, as the kernel has it. */
struct process {
    pid_t pid, parent;
    long run;
    unsigned long long start;
    cpu_set_t cpus;
};

static int text_of(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, size - 1);
    if (file >= 0)
        close(file);
    text[length > 0 ? length : 0] = 0;
    return length > 0 ? (int)length : 0;
}

/* Parent and start of a process that lives; false for one that is on its way out. */
static int lives(pid_t pid, pid_t *parent, unsigned long long *start)
{
    char text[1024], state;
    unsigned flags;
    if (!text_of(pid, "stat", text, sizeof text) || !strrchr(text, ')'))
        return 0;
    int found = sscanf(strrchr(text, ')') + 2,
                       "%c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                       &state, parent, &flags, start);
    return found == 4 && state != 'Z' && state != 'X' && !(flags & EXITING);
}

static int still_lives(const struct process *one)
{
    pid_t parent;
    unsigned long long start;
    return lives(one->pid, &parent, &start) && start == one->start;
}

/* The CPUs that a process was given. */
static int given(pid_t pid, cpu_set_t *cpus)
{
    static char text[65536];
    int length = text_of(pid, "environ", text, sizeof text);
    CPU_ZERO(cpus);
    for (char *pair = text; pair < text + length; pair += strlen(pair) + 1) {
        if (strncmp(pair, "NUMA_MASK=", strlen("NUMA_MASK=")))
            continue;
        for (char *at = pair + strlen("NUMA_MASK="); *at; at += *at == ',') {
            long first = strtol(at, &at, 10), last = *at == '-' ? strtol(at + 1, &at, 10) : first;
            for (; first <= last; first++)
                CPU_SET(first, cpus);
        }
    }
    return CPU_COUNT(cpus);
}

/* All processes of runs that live. */
static int look(struct process list[MAX])
{
    DIR *folder = opendir("/proc");
    int count = 0;
    for (struct dirent *entry; folder && (entry = readdir(folder)) && count < MAX;) {
        char words[256];
        pid_t pid = atoi(entry->d_name);
        int length = pid > 0 ? text_of(pid, "cmdline", words, sizeof words) : 0;
        const char *verb = words + strlen(words) + 1;
        if (length <= 0 || strcmp(words, "holders") || verb >= words + length || strcmp(verb, "sleep"))
            continue;
        struct process *one = &list[count];
        one->pid = pid;
        one->run = atol(verb + strlen(verb) + 1);
        if (given(pid, &one->cpus) && lives(pid, &one->parent, &one->start))
            count++;
    }
    closedir(folder);
    return count;
}

/* Two runs with one CPU; only if the first still lives after the second was seen. */
static int overlaps(const struct process list[], int count)
{
    int bad = 0;
    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++) {
            cpu_set_t both;
            CPU_AND(&both, &list[a].cpus, &list[b].cpus);
            if (a == b || list[a].run == list[b].run || CPU_COUNT(&both) == 0)
                continue;
            if (still_lives(&list[a]) && still_lives(&list[b])) {
                fprintf(stderr, "runs %ld (process %d) and %ld (process %d) share CPUs\n",
                        list[a].run, list[a].pid, list[b].run, list[b].pid);
                bad++;
            }
        }
    return bad;
}

/* The CPUs that `numa ps` knows; counts those that are there twice. */
static int told(cpu_set_t *all, int *holders)
{
    static char text[65536];
    FILE *from = popen("numa ps --json", "re");
    size_t length = from ? fread(text, 1, sizeof text - 1, from) : 0;
    text[length] = 0;
    if (!from || pclose(from) != 0 || !strstr(text, "\"holders\""))
        fail("numa ps failed: %s", text);
    int twice = 0;
    CPU_ZERO(all);
    *holders = 0;
    for (char *at = text; (at = strstr(at, "\"cpus\":\""));) {
        at += strlen("\"cpus\":\"");
        (*holders)++;
        while (*at != '"') {
            long first = strtol(at, &at, 10), last = first;
            if (*at == '-')
                last = strtol(at + 1, &at, 10);
            for (; first <= last; first++) {
                twice += CPU_ISSET(first, all) != 0;
                CPU_SET(first, all);
            }
            at += *at == ',';
        }
    }
    if (twice)
        fprintf(stderr, "numa ps tells CPUs twice: %s\n", text);
    return twice;
}

/* What lives before and after must be known in between. */
static int unknown(void)
{
    static struct process list[MAX];
    cpu_set_t all, known;
    int holders, count = look(list), bad = told(&all, &holders);
    for (int k = 0; k < count; k++) {
        CPU_AND(&known, &all, &list[k].cpus);
        if (!CPU_EQUAL(&known, &list[k].cpus) && still_lives(&list[k])) {
            fprintf(stderr, "numa ps does not know all CPUs of run %ld (process %d)\n", list[k].run,
                    list[k].pid);
            bad++;
        }
    }
    return bad;
}

static pid_t child_of(pid_t parent)
{
    DIR *folder = opendir("/proc");
    pid_t child = 0;
    for (struct dirent *entry; folder && !child && (entry = readdir(folder));) {
        pid_t pid = atoi(entry->d_name), its;
        unsigned long long start;
        if (pid > 0 && lives(pid, &its, &start) && its == parent)
            child = pid;
    }
    closedir(folder);
    return child;
}

static pid_t launch(long run, long seed)
{
    static const char *const ways[] = {"plain", "close", "daemon", "apart"};
    char cores[24], name[24], time[24], wait[24];
    snprintf(cores, sizeof cores, "%ld", 1 + seed % 4);
    snprintf(name, sizeof name, "%ld", run);
    snprintf(time, sizeof time, "%ld", 50 + seed / 4 % 600);
    snprintf(wait, sizeof wait, "--wait=%ld", seed / 7 % 3 * 5);
    pid_t pid = fork();
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, 1);
        setpgid(0, 0);
        execlp("numa", "numa", "run", "--busy", "off", wait, "-c", cores, "--", "holders", "sleep",
               name, time, ways[seed / 11 % 4], NULL);
        _exit(127);
    }
    return pid;
}

/* From now on the program may run everywhere. */
static void widen(pid_t program)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        CPU_SET(cpu, &all);
    sched_setaffinity(program, sizeof all, &all);
}

/* Kills one of those that belong to a launcher, or keeper and launcher; says whom. */
static const char *strike(pid_t launcher, long what)
{
    pid_t keeper = child_of(launcher), program = keeper ? child_of(keeper) : 0;
    switch (what) {
    case 0:
        kill(launcher, SIGKILL);
        return "launcher";
    case 1:
        return keeper && kill(keeper, SIGKILL) == 0 ? "keeper" : NULL;
    case 2:
        return program && kill(program, SIGKILL) == 0 ? "program" : NULL;
    case 4:
        if (program)
            widen(program);
        /* fall through */
    case 3:
        if (!keeper || kill(keeper, SIGKILL) != 0)
            return NULL;
        kill(launcher, SIGKILL);
        return "keeper and launcher";
    default:
        return NULL;
    }
}

static int reaped(pid_t launchers[AT_ONCE], long *refused)
{
    int status, ended = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (int k = 0; k < AT_ONCE; k++)
            if (launchers[k] == pid) {
                launchers[k] = 0;
                *refused += WIFEXITED(status) && WEXITSTATUS(status) == 2;
                ended++;
            }
    return ended;
}

static int stress(long launches, long seed)
{
    static struct process list[MAX];
    pid_t launchers[AT_ONCE] = {0};
    long run = 0, refused = 0, looks = 0, kills = 0, most = 0, bad = 0, alive = 0, removed = 0;
    srandom((unsigned)seed);
    /* So that nothing is left as a zombie. */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    do {
        reaped(launchers, &refused);
        alive = 0;
        for (int k = 0; k < AT_ONCE; k++) {
            if (!launchers[k] && run < launches)
                launchers[k] = launch(++run, random());
            alive += launchers[k] != 0;
        }
        rest(random() % 60);
        int count = look(list);
        bad += overlaps(list, count);
        most = count > most ? count : most;
        if (++looks % 10 == 0)
            bad += unknown();
        if (random() % 20 == 0)
            removed += unlink(REGISTRY) == 0;
        int at = (int)(random() % AT_ONCE);
        if (launchers[at] && strike(launchers[at], random() % 8))
            kills++;
    } while (run < launches || alive > 0);
    /* Daemons and programs without a launcher end by themselves. */
    for (int tries = 0; look(list) > 0 && tries < 600; tries++) {
        reaped(launchers, &refused);
        bad += overlaps(list, look(list));
        rest(50);
    }
    cpu_set_t left;
    int holders = 1;
    for (int tries = 0; holders > 0 && tries < 100; tries++) {
        reaped(launchers, &refused);
        told(&left, &holders);
        rest(50);
    }
    printf("launches %ld\nrefused %ld\nlooks %ld\nkills %ld\nremoved %ld\nmost at once %ld\nwrong %ld\nleft %d\n",
           run, refused, looks, kills, removed, most, bad, CPU_COUNT(&left));
    return bad || CPU_COUNT(&left);
}

int main(int count, char **words)
{
    if (count == 5 && !strcmp(words[1], "sleep"))
        return program(words[3], words[4]);
    if (count == 4 && !strcmp(words[1], "stress"))
        return stress(number("LAUNCHES", words[2], 1, 1000000), number("SEED", words[3], 0, 1000000));
    bad_arguments(USAGE);
}
