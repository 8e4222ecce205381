/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* blocks CASE     allocates in all ways and ends as without the library; prints "ok CASE" then. `blocks list` lists the
 * cases. `blocks print` prints what the log must have, a line each: function, address, size, the function that called it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);                  \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

enum { LARGE = 200000, SMALL = 100 };
/* What the compiler cannot leave out. */
static void *volatile kept;
static volatile size_t huge = SIZE_MAX / 2;

static bool is_aligned(const void *block, size_t alignment)
{
    return block && (uintptr_t)block % alignment == 0;
}

static void all_of_a_size(size_t size)
{
    char *block = malloc(size);
    CHECK(block && malloc_usable_size(block) >= size);
    memset(block, 7, size);
    block = realloc(block, 2 * size);
    CHECK(block && block[0] == 7 && block[size - 1] == 7);
    block = reallocarray(block, 3, size);
    CHECK(block && block[0] == 7 && block[size - 1] == 7);
    free(block);
    block = calloc(size, 2);
    for (size_t i = 0; i < 2 * size; i++)
        CHECK(block[i] == 0);
    free(block);
    void *aligned = NULL;
    for (size_t alignment = 16; alignment <= 1 << 16; alignment *= 4) {
        CHECK(posix_memalign(&aligned, alignment, size) == 0 && is_aligned(aligned, alignment));
        free(aligned);
        CHECK(is_aligned(kept = memalign(alignment, size), alignment));
        free(kept);
        CHECK(is_aligned(kept = aligned_alloc(alignment, size / alignment * alignment + alignment), alignment));
        free(kept);
    }
    CHECK(is_aligned(kept = valloc(size), 4096));
    free(kept);
    CHECK(is_aligned(kept = pvalloc(size), 4096));
    free(kept);
}

static void every_function(void)
{
    for (int i = 0; i < 200; i++) {
        all_of_a_size(SMALL + (size_t)i);
        all_of_a_size(LARGE + (size_t)i);
    }
}

static void failures(void)
{
    errno = 0;
    CHECK(!(kept = malloc(huge)) && errno == ENOMEM);
    errno = 0;
    CHECK(!(kept = calloc(huge, 4)) && errno == ENOMEM);
    char *block = malloc(LARGE);
    block[LARGE - 1] = 9;
    errno = 0;
    CHECK(!(kept = realloc(block, huge)) && errno == ENOMEM && block[LARGE - 1] == 9);
    errno = 0;
    CHECK(!(kept = reallocarray(block, huge, 4)) && errno == ENOMEM && block[LARGE - 1] == 9);
    void *aligned = &aligned;
    errno = 77;
    CHECK(posix_memalign(&aligned, 3, LARGE) == EINVAL && errno == 77 && aligned == &aligned);
    CHECK(munmap((void *)1, 4096) == -1 && errno == EINVAL);
    CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mremap((void *)4096, 4096, LARGE, 0) == MAP_FAILED);
    errno = 55;
    free(block);
    free(NULL);
    kept = malloc(LARGE);
    free(kept);
    CHECK(errno == 55);
}

static void mappings(void)
{
    enum { BYTES = 1 << 20, HALF = BYTES / 2 };
    for (int i = 0; i < 100; i++) {
        char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        memory[0] = 5;
        CHECK(mmap(memory + HALF, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == memory + HALF);
        CHECK(munmap(memory + HALF, HALF) == 0);
        memory = mremap(memory, HALF, 2 * BYTES, MREMAP_MAYMOVE);
        CHECK(memory != MAP_FAILED && memory[0] == 5);
        CHECK(munmap(memory, 2 * BYTES) == 0);
    }
}

enum { PLACES = 512, WORKERS = 6 };
static void *_Atomic places[PLACES];
static atomic_bool over;

/* Blocks that one thread allocates and another frees. */
static void *exchange(void *seed)
{
    unsigned state = (unsigned)(uintptr_t)seed;
    const char *operations = getenv("BLOCKS_OPERATIONS");
    for (int i = 0, count = operations ? atoi(operations) : 30000; i < count; i++) {
        size_t size = rand_r(&state) % 50 == 0 ? LARGE : (unsigned)rand_r(&state) % 2000 + 8;
        unsigned at = (unsigned)rand_r(&state) % PLACES;
        size_t *block = malloc(size);
        CHECK(block);
        *block = size;
        if (size > 1900) {
            block = realloc(block, size + 4000);
            CHECK(block && *block == size);
        }
        free(atomic_exchange(&places[at], block));
    }
    return NULL;
}

static void run_exchange(void)
{
    pthread_t threads[WORKERS];
    for (uintptr_t i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&threads[i], NULL, exchange, (void *)(i + 1)) == 0);
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < PLACES; i++)
        free(atomic_exchange(&places[i], NULL));
}

static void *fork_often(void *unused)
{
    while (!atomic_load(&over)) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            for (int i = 0; i < 20; i++) {
                kept = malloc(LARGE);
                CHECK(kept);
                free(kept);
            }
            _exit(3);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
    return unused;
}

static void forks(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, fork_often, NULL) == 0);
    run_exchange();
    atomic_store(&over, true);
    CHECK(pthread_join(thread, NULL) == 0);
    pid_t child = vfork();
    if (child == 0)
        execlp("true", "true", (char *)NULL);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static sigjmp_buf back;
static volatile sig_atomic_t handled;

static void allocate_in_handler(int number)
{
    (void)number;
    void *memory = mmap(NULL, LARGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory, LARGE);
    handled = 1;
}

/* On an alternate stack, which no thread's bounds contain. */
static void handlers(void)
{
    stack_t alternate = {.ss_sp = malloc(LARGE), .ss_size = LARGE};
    struct sigaction action = {.sa_handler = allocate_in_handler, .sa_flags = SA_ONSTACK};
    CHECK(sigaltstack(&alternate, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 2000; i++) {
        kept = malloc(LARGE);
        raise(SIGUSR1);
        free(kept);
    }
    CHECK(handled);
}

static void leave_by_jump(int number)
{
    kept = malloc(LARGE + (size_t)number);
    free(kept);
    siglongjmp(back, 1);
}

static void jumps(void)
{
    struct sigaction action = {.sa_handler = leave_by_jump};
    CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
    for (volatile int i = 0; i < 2000; i++)
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR2);
}

static pthread_key_t key;

static void allocate_at_end(void *value)
{
    free(value);
    free(malloc(LARGE));
}

static void *ends_with_memory(void *unused)
{
    CHECK(pthread_setspecific(key, malloc(LARGE)) == 0);
    return unused;
}

static void late(void)
{
    kept = malloc(LARGE);
    free(kept);
}

static void __attribute__((destructor)) later(void)
{
    late();
}

static void ends(void)
{
    CHECK(pthread_key_create(&key, allocate_at_end) == 0 && atexit(late) == 0);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, ends_with_memory, NULL) == 0 && pthread_join(thread, NULL) == 0);
    }
}

static void libraries(void)
{
    for (int i = 0; i < 50; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        CHECK(library && dlsym(library, "cos") && !dlsym(library, "no_such_function"));
        CHECK(dlerror());
        CHECK(dlclose(library) == 0);
    }
}

static void killed(void)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        for (;;)
            free(kept = malloc(LARGE));
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    int status;
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGKILL);
    all_of_a_size(LARGE);
}

static __attribute__((noinline)) void site_a(size_t size)
{
    kept = malloc(size);
    printf("malloc %p %zu %p\n", kept, size, (void *)(uintptr_t)site_a);
}

static __attribute__((noinline)) void site_b(size_t size)
{
    kept = calloc(1, size);
    printf("calloc %p %zu %p\n", kept, size, (void *)(uintptr_t)site_b);
}

static __attribute__((noinline)) void site_c(size_t size)
{
    void *block = NULL;
    CHECK(posix_memalign(&block, 4096, size) == 0);
    kept = block;
    printf("posix_memalign %p %zu %p\n", kept, size, (void *)(uintptr_t)site_c);
}

static __attribute__((noinline)) void site_d(size_t size)
{
    kept = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("mmap %p %zu %p\n", kept, size, (void *)(uintptr_t)site_d);
}

static __attribute__((noinline)) void site_e(size_t size)
{
    void *old = malloc(SMALL);
    kept = realloc(old, size);
    printf("realloc %p %zu %p\n", kept, size, (void *)(uintptr_t)site_e);
}

static void print_blocks(void)
{
    static void (*const SITES[])(size_t) = {site_a, site_b, site_c, site_d, site_e};
    unsigned state = 5;
    setvbuf(stdout, NULL, _IOLBF, 512);
    for (int i = 0; i < 1000; i++) {
        SITES[(unsigned)rand_r(&state) % 5](65536 + (unsigned)rand_r(&state) % 100000);
        if (i % 3 == 0) {
            SITES[0](65536);
            free(kept);
            printf("free %p\n", kept);
        }
    }
}

struct node {
    struct node *next;
    char content[40];
};

/* Many small blocks of one site. */
static void print_nodes(void)
{
    struct node *first = NULL;
    for (int i = 0; i < 1000000; i++) {
        struct node *node = malloc(sizeof *node);
        node->next = first;
        first = node;
    }
    while (first) {
        struct node *next = first->next;
        free(first);
        first = next;
    }
    printf("%p\n", (void *)(uintptr_t)print_nodes);
}

static const struct test {
    const char *name;
    void (*run)(void);
} TESTS[] = {
    {"every_function", every_function}, {"failures", failures}, {"mappings", mappings}, {"exchange", run_exchange},
    {"forks", forks}, {"handlers", handlers}, {"jumps", jumps}, {"ends", ends}, {"libraries", libraries},
    {"killed", killed},
};

int main(int count, char **words)
{
    const char *wanted = count > 1 ? words[1] : "list";
    if (strcmp(wanted, "print") == 0 || strcmp(wanted, "nodes") == 0) {
        (*wanted == 'p' ? print_blocks : print_nodes)();
        return 0;
    }
    bool lists = strcmp(wanted, "list") == 0;
    for (size_t i = 0; i < sizeof TESTS / sizeof *TESTS; i++) {
        if (lists)
            puts(TESTS[i].name);
        else if (strcmp(wanted, TESTS[i].name) == 0) {
            TESTS[i].run();
            printf("ok %s\n", wanted);
            return 0;
        }
    }
    /* An unknown case is a mistake of who names it. */
    return lists ? 0 : 2;
}
