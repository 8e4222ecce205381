/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Before main, after it, and around libraries that come and go. ALLOC_PLUGIN names the library. */
#include "cases.h"

/* What was allocated before main, by whom first. */
static char *before_all, *before_main, *aligned_before_main;

static void allocate_before_all(int count, char **arguments, char **environment)
{
    (void)count, (void)arguments, (void)environment;
    before_all = memset(malloc(1000), 1, 1000);
    before_all = realloc(before_all, 300000);
}

/* Runs before the constructors of all libraries. */
__attribute__((section(".preinit_array"), used)) static void (*preinit)(int, char **, char **) = allocate_before_all;

__attribute__((constructor)) static void allocate_before_main(void)
{
    before_main = memset(calloc(500, 10), 2, 5000);
    aligned_before_main = memset(memalign(4096, 100), 3, 100);
}

static void blocks_before_main(void)
{
    CHECK(before_all[0] == 1 && before_all[999] == 1 && before_main[4999] == 2 && aligned_before_main[99] == 3);
    before_main = realloc(before_main, 100000);
    CHECK(before_main[4999] == 2);
    free(before_all);
    free(before_main);
    before_main = NULL;
    free(aligned_before_main);
}

static void at_exit(void)
{
    CHECK(before_main[0] == 2);
    free(before_main);
    free(memset(malloc(100000), 1, 100000));
    before_main = malloc(10);
}

__attribute__((destructor)) static void allocate_after_main(void)
{
    free(before_main);
    free(memset(malloc(3 * MIB), 1, 3 * MIB));
}

static void blocks_after_main(void)
{
    CHECK(atexit(at_exit) == 0);
}

static void *allocate_always(void *seed)
{
    uint64_t state = (uint64_t)(uintptr_t)seed;
    for (;;) {
        size_t size = below(&state, 20) ? below(&state, 2000) : below(&state, 400000);
        free(memset(malloc(size), 1, size));
    }
    return NULL;
}

/* The process ends while threads are anywhere in the allocator. */
static void the_end_comes_while_threads_allocate(void)
{
    for (int round = 0; round < 30; round++) {
        pid_t child = fork();
        if (child == 0) {
            for (uintptr_t i = 0; i < 4; i++)
                pthread_detach(started(allocate_always, (void *)(i + 1)));
            usleep((unsigned)round * 200);
            exit(7);
        }
        wait_for(child, 7);
    }
}

static void *outlive(void *block)
{
    usleep(2000);
    free(block);
    free(memset(malloc(100000), 1, 100000));
    exit(9);
}

/* The main thread ends first; the process goes on without it. */
static void the_main_thread_ends_first(void)
{
    for (int round = 0; round < 10; round++) {
        pid_t child = fork();
        if (child == 0) {
            started(outlive, malloc(50000));
            pthread_exit(NULL);
        }
        wait_for(child, 9);
    }
}

struct plugin {
    void *library;
    int (*use)(int);
    void *(*block)(void);
};

static struct plugin loaded(void)
{
    const char *path = getenv("ALLOC_PLUGIN");
    CHECK(path);
    struct plugin plugin = {.library = dlopen(path, RTLD_NOW)};
    if (!plugin.library)
        dprintf(2, "%s\n", dlerror());
    CHECK(plugin.library);
    *(void **)&plugin.use = dlsym(plugin.library, "plugin_use");
    *(void **)&plugin.block = dlsym(plugin.library, "plugin_block");
    CHECK(plugin.use && plugin.block);
    return plugin;
}

static void *use_often(void *argument)
{
    struct plugin *plugin = argument;
    for (int i = 0; i < 300; i++) {
        CHECK(plugin->use(i * 10) == 4);
        if (i % 10 == 0)
            free(plugin->block());
    }
    return plugin->block();
}

static void libraries_come_and_go(void)
{
    for (int round = 0, count = rounds(20, 100); round < count; round++) {
        struct plugin plugin = loaded();
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            threads[i] = started(use_often, &plugin);
        CHECK(plugin.use(5) == 4);
        void *own = plugin.block();
        void *left[3];
        for (int i = 0; i < 3; i++)
            CHECK(pthread_join(threads[i], &left[i]) == 0);
        CHECK(dlclose(plugin.library) == 0);
        free(own);
        for (int i = 0; i < 3; i++)
            free(left[i]);
    }
}

static void *load_often(void *unused)
{
    for (int round = 0, count = rounds(10, 50); round < count; round++) {
        struct plugin plugin = loaded();
        CHECK(plugin.use(round) == 4);
        free(plugin.block());
        CHECK(dlclose(plugin.library) == 0);
    }
    return unused;
}

static void threads_load_libraries(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = started(load_often, NULL);
    for (int i = 0; i < 4; i++)
        joined(threads[i]);
}

/* What a thread destroys last: objects of C++ threads. */
extern int __cxa_thread_atexit_impl(void (*run)(void *), void *object, void *library);
extern void *__dso_handle;

static void destroy_object(void *block)
{
    free(block);
    free(memset(malloc(2000), 1, 2000));
}

static void *with_objects(void *unused)
{
    for (size_t size = 1; size < 300000; size = size * 3 + 1)
        CHECK(__cxa_thread_atexit_impl(destroy_object, malloc(size), &__dso_handle) == 0);
    return unused;
}

static void objects_of_threads(void)
{
    for (int i = 0; i < 100; i++)
        joined(started(with_objects, NULL));
    with_objects(NULL);
}

const struct test CASES[] = {
    {"blocks_before_main", blocks_before_main},
    {"blocks_after_main", blocks_after_main},
    {"the_end_comes_while_threads_allocate", the_end_comes_while_threads_allocate},
    {"the_main_thread_ends_first", the_main_thread_ends_first},
    {"libraries_come_and_go", libraries_come_and_go},
    {"threads_load_libraries", threads_load_libraries},
    {"objects_of_threads", objects_of_threads},
    {NULL, NULL},
};
