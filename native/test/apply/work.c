/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* work CASE     allocates, and checks what policies its memory has: cure.c says which it should have. */
#define _GNU_SOURCE
#include "work.h"
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum { TABLE_BYTES = 8 << 20, WORDS = 1 << 18, MILLION = 1000000 };

char table[TABLE_BYTES];
int words[WORDS] = {1, 2, 3};
static void *volatile kept;
static char **own_words;

static __attribute__((constructor)) void before_main(void)
{
    words[WORDS - 1] = 7;
}

static void variables(void)
{
    CHECK(has_quarters(table, sizeof table) && has_quarters(words, sizeof words));
    CHECK(words[0] == 1 && words[2] == 3 && words[WORDS - 1] == 7 && table[5] == 0);
    memset(table, 1, sizeof table);
}

static __attribute__((noinline)) char *site(size_t size)
{
    return kept = malloc(size);
}

static __attribute__((noinline)) char *zeroed(size_t size)
{
    return kept = calloc(size, 1);
}

static bool is_zero(const char *block, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (block[i])
            return false;
    return true;
}

static void blocks(void)
{
    for (int i = 0; i < 20; i++) {
        char *block = site(LARGE), *other = site(LARGE);
        CHECK(block && other && malloc_usable_size(block) >= LARGE);
        CHECK(has_quarters(block, LARGE) && has_quarters(other, LARGE));
        memset(block, 7, malloc_usable_size(block));
        memset(other, 8, LARGE);
        CHECK(block[0] == 7 && block[LARGE - 1] == 7);
        free(block);
        free(other);
        block = zeroed(LARGE + 4);
        CHECK(has_quarters(block, LARGE + 4) && is_zero(block, LARGE + 4));
        memset(block, 9, LARGE + 4);
        free(block);
    }
    /* Other sizes have the same parts; small ones have none. */
    char *twice = site(2 * LARGE), *half = site(LARGE / 2), *tiny = site(5001);
    CHECK(has_quarters(twice, 2 * LARGE));
    CHECK(has_quarters(half, LARGE / 2));
    CHECK(has_mode(tiny, 5001, MPOL_DEFAULT));
    free(twice);
    free(half);
    free(tiny);
    volatile size_t most = SIZE_MAX;
    for (size_t less = 0; less < 3; less++) {
        errno = 0;
        CHECK(!site(most - less * 4000) && errno == ENOMEM);
    }
    CHECK(!site(most / 4) && errno == ENOMEM);
}

static void reallocated(void)
{
    char *block = site(LARGE);
    memset(block, 3, LARGE);
    for (size_t size = LARGE; size < 20 * LARGE; size += size / 2) {
        CHECK((block = realloc(block, size)) && has_quarters(block, size));
        CHECK(block[0] == 3 && block[LARGE - 1] == 3);
    }
    CHECK((block = realloc(block, 100)) && block[0] == 3 && block[99] == 3);
    CHECK((block = realloc(block, 5000)) && block[99] == 3);
    free(block);
    block = site(LARGE);
    CHECK(realloc(block, 0) == NULL);
    block = site(LARGE);
    block[0] = 5;
    errno = 0;
    volatile size_t most = SIZE_MAX / 2;
    void *larger = realloc(block, most);
    CHECK(!larger && errno == ENOMEM && block[0] == 5);
    free(block);
}

static __attribute__((noinline)) void *grown(void *old)
{
    return kept = realloc(old, LARGE);
}

static void grown_from_others(void)
{
    char *block = malloc(500);
    memset(block, 4, 500);
    CHECK((block = grown(block)) && has_quarters(block, LARGE) && block[0] == 4 && block[499] == 4);
    memset(block, 1, LARGE);
    free(block);
    CHECK((block = grown(NULL)) && has_quarters(block, LARGE));
    free(block);
}

static void aligned(void)
{
    for (size_t alignment = 16; alignment <= 4 << 20; alignment *= 4) {
        void *block = NULL;
        CHECK(posix_memalign(&block, alignment, LARGE) == 0);
        CHECK((uintptr_t)block % alignment == 0 && has_quarters(block, LARGE));
        memset(block, 1, LARGE);
        free(block);
        CHECK((block = memalign(alignment, LARGE + 2)));
        CHECK((uintptr_t)block % alignment == 0 && has_quarters(block, LARGE));
        memset(block, 1, LARGE);
        free(block);
    }
    void *block;
    CHECK(posix_memalign(&block, 3, LARGE) == EINVAL);
}

static __attribute__((noinline)) char *mapped(size_t size)
{
    return kept = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void mappings(void)
{
    char *memory = mapped(LARGE);
    CHECK(memory != MAP_FAILED && has_quarters(memory, LARGE));
    memset(memory, 1, LARGE);
    memory = mremap(memory, LARGE, 4 * LARGE, MREMAP_MAYMOVE);
    /* Older kernels do not move several mappings at once. */
    if (memory != MAP_FAILED) {
        CHECK(has_quarters(memory, 4 * LARGE) && memory[LARGE - 1] == 1);
        CHECK(munmap(memory, 1 << 20) == 0 && munmap(memory + (1 << 20), 3 * LARGE) == 0);
    }
    for (int i = 0; i < 2000; i++) {
        memory = mapped(LARGE);
        CHECK(memory != MAP_FAILED && (i % 100 || has_quarters(memory, LARGE)));
        CHECK(munmap(memory, LARGE) == 0);
    }
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    memory = mapped(LARGE);
    CHECK(mmap(memory, LARGE, PROT_READ | PROT_WRITE, flags, -1, 0) == memory);
    CHECK(has_mode(memory, LARGE, MPOL_DEFAULT) && munmap(memory, LARGE) == 0);
}

/* One allocating function of two users. */
static __attribute__((noinline)) char *checked(size_t size)
{
    char *block = malloc(size);
    CHECK(block);
    return kept = block;
}

static __attribute__((noinline)) char *first_user(size_t size)
{
    char *block = checked(size);
    __asm__ volatile("" ::: "memory");
    return block;
}

static __attribute__((noinline)) char *second_user(size_t size)
{
    char *block = checked(size);
    __asm__ volatile("" ::: "memory");
    return block;
}

static void *users(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10; i++) {
        char *one = first_user(LARGE), *other = second_user(LARGE + 2);
        CHECK(has_quarters(one, LARGE) && has_mode(other, LARGE, MPOL_DEFAULT));
        memset(one, 1, LARGE);
        free(one);
        free(other);
    }
    return NULL;
}

static void chains(void)
{
    pthread_t thread;
    users(NULL);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&thread, NULL, users, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static void interleaved(void)
{
    char *block = site(LARGE);
    CHECK(has_mode(block, LARGE, MPOL_INTERLEAVE) || has_mode(block, LARGE, 6));
    memset(block, 1, LARGE);
    free(block);
}

static size_t count_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    size_t count = 0;
    CHECK(file);
    for (int c; (c = getc(file)) != EOF;)
        count += c == '\n';
    fclose(file);
    return count;
}

static char *all[MILLION];

static void million(void)
{
    size_t count = getenv("SPY") ? 2 : MILLION, before = count_mappings();
    for (size_t i = 0; i < count; i++) {
        CHECK((all[i] = site(SMALL_BLOCK)));
        memset(all[i], (int)i, SMALL_BLOCK);
    }
    CHECK(count_mappings() < before + 1000);
    for (size_t i = 0; i < count; i += 2)
        free(all[i]);
    for (size_t i = 0; i < count; i += 2)
        memset(all[i] = site(SMALL_BLOCK), (int)i, SMALL_BLOCK);
    for (size_t i = 0; i < count; i++)
        CHECK(all[i][0] == (char)i && all[i][SMALL_BLOCK - 1] == (char)i);
    for (size_t i = 0; i < count; i++)
        free(all[i]);
    CHECK(count_mappings() < before + 1000);
    for (size_t i = 0; i < count; i++)
        free(site(SMALL_BLOCK));
}

/* Mappings cannot be merged here; the program goes on without policies. */
static void many_large(void)
{
    size_t count = getenv("SPY") ? 2 : 60000;
    for (size_t i = 0; i < count; i++) {
        CHECK((all[i] = site(70001)));
        all[i][70000] = 1;
    }
    CHECK(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    for (size_t i = 0; i < count; i++)
        free(all[i]);
}

static void padded(void)
{
    enum { COUNT = 1000 };
    for (int i = 0; i < COUNT; i++) {
        all[i] = site(SMALL_BLOCK);
        memset(all[i], i, SMALL_BLOCK);
        CHECK(!has_policies() || ((uintptr_t)all[i] % 128 == 0 && malloc_usable_size(all[i]) >= 128));
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK(all[i][0] == (char)i && all[i][SMALL_BLOCK - 1] == (char)i);
        free(all[i]);
    }
    char *block = zeroed(SMALL_BLOCK + 2);
    CHECK(is_zero(block, SMALL_BLOCK + 2));
}

enum { PASSED = 100000, PASSES = 4 };
static char *_Atomic passed[PASSED];

static void *take(void *unused)
{
    (void)unused;
    for (int i = 0; i < PASSED; i++) {
        char *block;
        while (!(block = passed[i]))
            sched_yield();
        CHECK(block[0] == (char)i);
        passed[i] = NULL;
        free(block);
    }
    return NULL;
}

/* One thread allocates what another frees. */
static void handed_over(void)
{
    pthread_t thread;
    if (getenv("SPY")) {
        free(site(SMALL_BLOCK));
        return;
    }
    for (int pass = 0; pass < PASSES; pass++) {
        CHECK(pthread_create(&thread, NULL, take, NULL) == 0);
        for (int i = 0; i < PASSED; i++) {
            char *block = site(SMALL_BLOCK);
            CHECK(block);
            memset(block, i, SMALL_BLOCK);
            passed[i] = block;
        }
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

enum { CHURNED = 1000, CHILDREN = 12 };

static void *churn(void *unused)
{
    (void)unused;
    for (int i = 0; i < CHURNED; i++) {
        char *one = site(SMALL_BLOCK), *two = zeroed(LARGE);
        memset(one, i, SMALL_BLOCK);
        CHECK(two[0] == 0 && two[LARGE - 1] == 0);
        two[0] = two[LARGE - 1] = 1;
        CHECK(one[SMALL_BLOCK - 1] == (char)i);
        free(two);
        free(one);
    }
    return NULL;
}

static void forks(void)
{
    pthread_t threads[3];
    if (getenv("SPY")) {
        free(site(SMALL_BLOCK));
        free(zeroed(LARGE));
        return;
    }
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, NULL) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0) {
            char *block = zeroed(LARGE);
            CHECK(has_quarters(block, LARGE));
            free(block);
            churn(NULL);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void executes(void)
{
    char *block = site(LARGE);
    CHECK(has_quarters(block, LARGE));
    if (getenv("SPY")) {
        free(zeroed(LARGE + 4));
        return;
    }
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", own_words[0], "blocks", (char *)NULL);
        _exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    child = vfork();
    if (child == 0)
        _exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void overridden(void)
{
    unsigned long nodes = 1;
    char *block = site(LARGE);
    uintptr_t from = ((uintptr_t)block + 4095) / 4096 * 4096;
    typedef long bind(void *, unsigned long, int, const unsigned long *, unsigned long, unsigned);
    bind *own = (bind *)dlsym(RTLD_DEFAULT, "mbind");
    if (own)
        CHECK(own((void *)from, LARGE / 2, MPOL_BIND, &nodes, 64, 0) == 0);
    CHECK(syscall(SYS_mbind, from, LARGE / 2, MPOL_BIND, &nodes, 64UL, 0UL) == 0);
    CHECK(has_quarters(block, LARGE));
    CHECK(madvise((void *)from, LARGE / 2, MADV_HUGEPAGE) == 0);
    memset(block, 1, LARGE);
    free(block);
    block = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(syscall(SYS_mbind, block, LARGE / 2, MPOL_BIND, &nodes, 64UL, 0UL) == 0);
    CHECK(getenv("SPY") || mode_at(block) == MPOL_BIND);
}

/* Ends the process at all system calls but those that it makes itself. */
static void filter(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_brk, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all_of_it = {sizeof program / sizeof *program, program};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all_of_it) == 0);
}

/* What is there stays, and is freed; new blocks come from the heap, which grows by brk. */
static void filters(void)
{
    /* Asked so, the kernel only tells that it has filters. */
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1 && errno == EFAULT);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) == -1 && errno == EINVAL);
    char *block = site(LARGE);
    CHECK(has_quarters(block, LARGE) && mallopt(M_MMAP_THRESHOLD, 1 << 25) == 1);
    for (int i = 0; i < 1000; i++)
        CHECK((all[i] = site(SMALL_BLOCK)));
    if (!getenv("SPY"))
        filter();
    for (int i = 1000; i < 3000; i++)
        CHECK((all[i] = i % 2 ? zeroed(SMALL_BLOCK + 2) : checked(SMALL_BLOCK + 4)));
    for (int i = 0; i < 3000; i++)
        free(all[i]);
    CHECK((block = realloc(block, 2 * LARGE)));
    memset(block, 1, 2 * LARGE);
    free(block);
    for (size_t size = LARGE; size < 4 * LARGE; size += 10000) {
        CHECK((block = site(size)));
        memset(block, 1, size);
        free(block);
    }
    block = zeroed(LARGE);
    CHECK(is_zero(block, LARGE));
}

static void closed(void)
{
    if (!getenv("SPY"))
        CHECK(syscall(SYS_close_range, 3, ~0U, 0) == 0 && close(0) == 0 && close(1) == 0);
    blocks();
}

static __attribute__((noinline)) char *mapped_at(char *where)
{
    return kept = mmap(where, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Mappings of an object, unmapped across their borders and from within. */
static void pieces(void)
{
    enum { COUNT = 64, PAGES = (LARGE + 4095) / 4096, BYTES = PAGES * 4096, ALL = COUNT * BYTES };
    char *first = mmap(NULL, ALL, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(mapped_at(first + i * BYTES) != MAP_FAILED);
    CHECK(has_quarters(first, LARGE) && has_quarters(first + 9 * BYTES, LARGE));
    memset(first, 1, ALL);
    for (int at = 4096; at + 31 * 4096 <= ALL; at += 97 * 4096)
        CHECK(munmap(first + at, 31 * 4096) == 0);
    CHECK(first[0] == 1 && first[4096 * 33] == 1 && munmap(first, ALL) == 0);
    CHECK(mapped_at(first) == first && has_quarters(first, LARGE) && first[0] == 0);
    memset(first, 1, LARGE);
}

/* Blocks whose mapping the program changes before it frees them, as it may where they are mapped one by one. */
static void torn(void)
{
    CHECK(mallopt(M_MMAP_THRESHOLD, 128 << 10) == 1);
    for (int way = 0; way < 4; way++) {
        char *block = site(LARGE), *page = (char *)((uintptr_t)block / 4096 * 4096 + 20 * 4096), *other;
        memset(block, 1, LARGE);
        if (way == 0)
            CHECK(munmap(page, 8 * 4096) == 0);
        else if (way == 1)
            CHECK(mprotect(page, 4096, PROT_NONE) == 0);
        else if (way == 2)
            CHECK(mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page);
        else
            CHECK((other = mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, page + 8192)) == page + 8192 && *other == 1);
        free(block);
        CHECK((block = site(LARGE)) && has_quarters(block, LARGE));
        memset(block, 2, LARGE);
        free(block);
    }
}

/* The program's policy for all of its memory stays as it is. */
static void own_policies(void)
{
    unsigned long nodes = 1;
    int mode;
    CHECK(syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 64UL) == 0);
    blocks();
    CHECK(syscall(SYS_get_mempolicy, &mode, NULL, 0UL, NULL, 0UL) == 0 && mode == MPOL_BIND);
}

/* Each system call stops the program, and another one looks at it. */
static void traced(void)
{
    int status;
    if (getenv("SPY")) {
        blocks();
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        CHECK(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0);
        execl("/proc/self/exe", own_words[0], "blocks", (char *)NULL);
        _exit(3);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
    while (WIFSTOPPED(status)) {
        int number = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        CHECK(ptrace(PTRACE_SYSCALL, child, NULL, (void *)(intptr_t)number) == 0);
        CHECK(waitpid(child, &status, 0) == child);
    }
    CHECK(status == 0);
}

/* Where policies are refused, all of an object is touched before the program has it. */
static void touched(void)
{
    unsigned char there[LARGE / 4096 + 1];
    char *block = site(LARGE);
    CHECK(getenv("SPY") || mincore(block, LARGE, there) == 0);
    for (size_t i = 0; !getenv("SPY") && i < LARGE / 4096; i++)
        CHECK(there[i] & 1 || i / 61 % 2 || i % 61 < 2);
    CHECK(is_zero(block, LARGE) && words[0] == 1 && words[WORDS - 1] == 7);
}

typedef const char *work(size_t);

static void plugin(void)
{
    void *library = dlopen("./plugin.so", RTLD_NOW);
    CHECK(library);
    CHECK(dlerror() == NULL);
    work *run = (work *)dlsym(library, "plugin_work");
    CHECK(run);
    const char *wrong = run(LARGE);
    if (wrong)
        dprintf(2, "%s\n", wrong);
    CHECK(!wrong && dlclose(library) == 0);
    /* By the search path of the caller, which is not that of the preloaded library. */
    library = dlopen("libbeside.so", RTLD_NOW);
    CHECK(library);
    for (int i = 0; i < 100; i++)
        CHECK(dlopen("./plugin.so", RTLD_NOW) && has_mode(site(LARGE), LARGE, MPOL_DEFAULT));
    library = dlopen("./plugin.so", RTLD_NOW);
    run = (work *)dlsym(library, "plugin_work");
    CHECK(run && !run(LARGE));
    CHECK(!dlopen("/nowhere.so", RTLD_NOW) && dlerror() && !dlerror());
}

/* Two files of one build, as modules of a program that are copied. */
static void copies(void)
{
    for (int round = 0; round < 3; round++) {
        void *one = dlopen("./plugin.so", RTLD_NOW), *other = dlopen("./copied.so", RTLD_NOW);
        for (int i = 0; i < 2; i++) {
            work *run = (work *)dlsym(i ? other : one, "plugin_work");
            const char *wrong = run(LARGE);
            if (wrong)
                dprintf(2, "%s: %s\n", i ? "copy" : "first", wrong);
            CHECK(!wrong);
        }
        CHECK(round == 2 || (dlclose(round ? one : other) == 0 && dlclose(round ? other : one) == 0));
    }
}

/* A plugin with a scope of its own frees what the program has allocated. */
static void deep_binding(void)
{
    typedef void take(void *);
    void *library = dlopen("./plugin.so", RTLD_NOW | RTLD_DEEPBIND);
    take *give_away = (take *)dlsym(library, "plugin_free");
    CHECK(library && give_away);
    char *block = site(LARGE);
    CHECK(has_quarters(block, LARGE));
    memset(block, 1, LARGE);
    give_away(block);
    give_away(malloc(100));
    CHECK(dlclose(library) == 0);
}

void random_operations(void);

static const struct {
    const char *name;
    void (*run)(void);
} CASES[] = {
    {"variables", variables}, {"blocks", blocks}, {"reallocated", reallocated}, {"grown", grown_from_others},
    {"aligned", aligned}, {"mappings", mappings}, {"chains", chains}, {"interleaved", interleaved},
    {"million", million}, {"many_large", many_large}, {"padded", padded}, {"handed_over", handed_over}, {"forks", forks},
    {"executes", executes}, {"overridden", overridden}, {"filters", filters}, {"closed", closed}, {"touched", touched},
    {"pieces", pieces}, {"torn", torn}, {"own_policies", own_policies}, {"traced", traced}, {"plugin", plugin}, {"copies", copies},
    {"deep_binding", deep_binding}, {"random", random_operations},
};

int main(int count, char **arguments)
{
    own_words = arguments;
    for (size_t i = 0; count == 2 && i < sizeof CASES / sizeof *CASES; i++)
        if (strcmp(CASES[i].name, arguments[1]) == 0) {
            CASES[i].run();
            return 0;
        }
    return 2;
}
