/* placed plain|pool|huge|plugin|omp|nested|forks [THREADS [KIB]]     default 5 256
 *
 * Threads touch KIB of their stacks and their thread-local storage and tell where those pages are.
 *   plain    THREADS threads at once, besides the main one
 *   pool     the same ten times, each time on stacks that others left
 *   huge     on stacks of the caller's, of whole huge pages
 *   plugin   like plain; before, the library that PLACED_PLUGIN names is loaded, and the pages of its
 *            thread-local storage, which belongs to no stack, are distinguished
 *   omp      OpenMP's threads; THREADS counts the main one
 *   nested   two teams of OpenMP below a team of two
 *   forks    two children, one after the other, each with THREADS threads besides its main one */
#define _GNU_SOURCE
#include "homes.h"
#include <dlfcn.h>
#include <omp.h>
#include <sys/wait.h>

#define USAGE "usage: placed plain|pool|huge|plugin|omp|nested|forks [THREADS [KIB]]"

enum { ROUNDS = 10, HUGE_PAGE = 2 << 20, MAX_THREADS = 256 };

static size_t touched = 256 << 10;
static pthread_barrier_t all_there;

struct member {
    pthread_t id;
    int index;
    const char *name;
};

/* The calling thread's own storage in the plugin, if there is one, and how much that is. */
static char *(*plugin_storage)(size_t *bytes);
static long plugin_home, plugin_elsewhere;

/* Only whole pages: at both ends there may be something else. */
static void plugin_look(void)
{
    size_t bytes;
    long home = 0, elsewhere = 0;
    char *storage = plugin_storage(&bytes);
    touch_pages(storage, bytes);
    char *first = (char *)(((uintptr_t)storage + PAGE - 1) / PAGE * PAGE);
    homes_count(node_of_cpu(sched_getcpu()), first, (void *)((uintptr_t)(storage + bytes) / PAGE * PAGE), &home,
                &elsewhere);
    pthread_mutex_lock(&homes_lock);
    plugin_home += home;
    plugin_elsewhere += elsewhere;
    pthread_mutex_unlock(&homes_lock);
}

static void *member_run(void *argument)
{
    struct member *member = argument;
    homes_touch(touched);
    pthread_barrier_wait(&all_there);
    homes_look(member->name, member->index);
    if (plugin_storage)
        plugin_look();
    pthread_barrier_wait(&all_there);
    return NULL;
}

/* This number of threads at once; the main thread reports too. */
static void run_team(const char *name, int threads, const pthread_attr_t *attributes)
{
    static struct member team[MAX_THREADS];
    pthread_barrier_init(&all_there, NULL, threads + 1);
    for (int i = 0; i < threads; i++) {
        team[i] = (struct member){.index = i + 1, .name = name};
        int wrong = pthread_create(&team[i].id, attributes, member_run, &team[i]);
        if (wrong)
            fail("cannot start thread %d: %s", i, strerror(wrong));
    }
    homes_touch(touched);
    pthread_barrier_wait(&all_there);
    homes_look(name, 0);
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < threads; i++)
        pthread_join(team[i].id, NULL);
}

static void run_plugin(int threads)
{
    const char *path = getenv("PLACED_PLUGIN");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!library)
        fail("PLACED_PLUGIN: %s", path ? dlerror() : "names no library");
    *(void **)&plugin_storage = dlsym(library, "storage");
    if (!plugin_storage)
        fail("%s has no function 'storage'", path);
    run_team("plugin", threads, NULL);
    printf("plugin_pages_at_home %ld\nplugin_pages_elsewhere %ld\n", plugin_home, plugin_elsewhere);
}

/* The C library keeps stacks and gives the last first: with another number of threads each time,
 * and all cores taken in between, stacks go to other cores. */
static void run_pool(int threads)
{
    for (int round = 0; round < ROUNDS; round++)
        run_team("pool", round % 2 ? threads : threads - 1, NULL);
}

/* Stacks of the caller's that go round, so that each comes to several cores. */
static void run_huge(int threads)
{
    static struct member team[MAX_THREADS];
    const size_t bytes = 2 * HUGE_PAGE;
    char *memory = mmap(NULL, (threads + 1) * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("no address space for stacks");
    memory = (char *)(((uintptr_t)memory + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    for (int round = 0; round < 4; round++) {
        pthread_barrier_init(&all_there, NULL, threads);
        for (int i = 0; i < threads; i++) {
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            pthread_attr_setstack(&attributes, memory + (i + round) % threads * bytes, bytes);
            team[i] = (struct member){.index = i, .name = "huge"};
            int wrong = pthread_create(&team[i].id, &attributes, member_run, &team[i]);
            if (wrong)
                fail("cannot start thread %d: %s", i, strerror(wrong));
            pthread_attr_destroy(&attributes);
        }
        for (int i = 0; i < threads; i++)
            pthread_join(team[i].id, NULL);
    }
}

static void run_openmp(int threads)
{
    printf("bind %d\n", (int)omp_get_proc_bind());
    for (int round = 0; round < 3; round++) {
#pragma omp parallel num_threads(threads)
        {
            homes_touch(touched);
#pragma omp barrier
            homes_look("omp", omp_get_thread_num());
#pragma omp barrier
        }
    }
}

static void run_nested(int threads)
{
    omp_set_max_active_levels(2);
    for (int round = 0; round < 3; round++) {
#pragma omp parallel num_threads(2)
        {
            int outer = omp_get_thread_num();
#pragma omp parallel num_threads(threads)
            {
                homes_touch(touched);
#pragma omp barrier
                homes_look("nested", outer * 100 + omp_get_thread_num());
#pragma omp barrier
            }
        }
    }
}

static void run_forks(int threads)
{
    /* The parent is bound before it forks. */
    run_team("parent", 1, NULL);
    for (int child = 0; child < 2; child++) {
        fflush(stdout);
        pid_t id = fork();
        if (id == 0) {
            cpu_set_t mask;
            sched_getaffinity(0, sizeof mask, &mask);
            printf("child_may_use %d\n", CPU_COUNT(&mask));
            homes = (struct homes){0};
            run_team("child", threads, NULL);
            homes_print();
            fflush(stdout);
            _exit(0);
        }
        int status;
        if (id < 0 || waitpid(id, &status, 0) != id || status)
            fail("a child failed");
    }
}

int main(int count, char **words)
{
    if (count < 2 || count > 4)
        bad_arguments(USAGE);
    int threads = count > 2 ? number("THREADS", words[2], 1, MAX_THREADS) : 5;
    const char *what = words[1];
    if (count > 3)
        touched = number("KIB", words[3], 4, 3072) << 10;
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    if (strcmp(what, "plain") == 0)
        run_team(what, threads, NULL);
    else if (strcmp(what, "pool") == 0)
        run_pool(threads);
    else if (strcmp(what, "huge") == 0)
        run_huge(threads);
    else if (strcmp(what, "plugin") == 0)
        run_plugin(threads);
    else if (strcmp(what, "omp") == 0)
        run_openmp(threads);
    else if (strcmp(what, "nested") == 0)
        run_nested(threads);
    else if (strcmp(what, "forks") == 0)
        run_forks(threads);
    else
        bad_arguments(USAGE);
    homes_print();
    return 0;
}
