/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Errors of programs that the allocator must find: it says which block, and ends the process with SIGABRT. */
#include "cases.h"

/* Where the misused memory is; the child tells its parent. */
static void **misused;

static void *names(void *block)
{
    *misused = block;
    return unknown(block);
}

/* Whether the child, which runs this, was stopped with a line that has these words and the address. */
static void is_found(void (*run)(void), const char *words)
{
    int ends[2];
    char text[4096], address[32];
    misused = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(misused != MAP_FAILED && pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(ends[1], STDERR_FILENO);
        run();
        _exit(50);
    }
    close(ends[1]);
    size_t bytes = 0;
    ssize_t more;
    while (bytes < sizeof text - 1 && (more = read(ends[0], text + bytes, sizeof text - 1 - bytes)) > 0)
        bytes += (size_t)more;
    text[bytes] = 0;
    close(ends[0]);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    snprintf(address, sizeof address, "%lx", (unsigned long)*misused);
    bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (!aborted || !strstr(text, words) || !strstr(text, address))
        dprintf(2, "the child, told to misuse %s, ended with status %#x (%#x is SIGABRT) and said '%s'\n", address,
                (unsigned)status, SIGABRT, text);
    CHECK(aborted && strstr(text, words) && strstr(text, address));
}

static void again_at_once(void)
{
    void *block = names(malloc(100));
    free(block);
    free(unknown(block));
}

static void again_after_others(void)
{
    void *blocks[50];
    for (int i = 0; i < 50; i++)
        blocks[i] = malloc(100);
    for (int i = 0; i < 50; i++)
        free(blocks[i]);
    free(names(blocks[20]));
}

static void again_in_all_sizes(void)
{
    /* The parent calls it for each size. */
    size_t size = strtoul(getenv("MISUSE_SIZE"), NULL, 10);
    void *block = names(malloc(size));
    free(block);
    free(unknown(block));
}

static void again_after_allocations(void)
{
    void *block = names(malloc(300));
    free(block);
    for (int i = 0; i < 10; i++)
        unknown(malloc(2000));
    free(unknown(block));
}

static void *free_it(void *block)
{
    free(block);
    return NULL;
}

static void again_after_another_thread(void)
{
    void *block = names(malloc(100));
    joined(started(free_it, block));
    free(unknown(block));
}

static void again_by_another_thread(void)
{
    void *block = names(malloc(100));
    free(block);
    joined(started(free_it, unknown(block)));
}

static void again_after_its_thread(void)
{
    void *block = names(malloc(100));
    joined(started(free_it, block));
    joined(started(free_it, unknown(block)));
}

static void again_when_large(void)
{
    void *block = names(memset(malloc(5 * MIB), 1, 5 * MIB));
    free(block);
    free(unknown(block));
}

static void again_by_realloc(void)
{
    void *block = names(malloc(100));
    free(block);
    unknown(realloc(unknown(block), 200));
}

static void aligned_again(void)
{
    void *block = names(memalign(4096, 100));
    free(block);
    free(unknown(block));
}

static void double_frees(void)
{
    is_found(again_at_once, "double free");
    is_found(again_after_others, "double free");
    is_found(again_after_allocations, "double free");
    is_found(aligned_again, "double free");
    is_found(again_by_realloc, "double free");
}

static void double_frees_of_threads(void)
{
    is_found(again_after_another_thread, "double free");
    is_found(again_by_another_thread, "double free");
    is_found(again_after_its_thread, "double free");
}

static void double_frees_of_all_sizes(void)
{
    for (size_t size = 1; size <= 64 * MIB; size *= 2) {
        char text[32];
        snprintf(text, sizeof text, "%zu", size);
        setenv("MISUSE_SIZE", text, 1);
        snprintf(circumstances, sizeof circumstances, "; %zu bytes", size);
        is_found(again_in_all_sizes, size < 1 * MIB ? "double free" : " free");
    }
}

/* Of large blocks it may be gone: then it is no block. */
static void double_free_of_a_large_block(void)
{
    is_found(again_when_large, " free");
}

static size_t block_size, offset;

static void inside(void)
{
    char *block = malloc(block_size);
    free(names(block + offset));
}

static void pointers_inside_blocks(void)
{
    const size_t places[][2] = {{100, 1},      {100, 8},        {100, 16},      {1000, 512},        {5000, 4096},
                                {40000, 4096}, {40000, 24},     {300000, 4096}, {5 * MIB, 4096},    {5 * MIB, 16},
                                {5 * MIB, 1},  {5 * MIB, MIB},  {5 * MIB, 2 * MIB}, {200000, 65536}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        block_size = places[i][0];
        offset = places[i][1];
        snprintf(circumstances, sizeof circumstances, "; %zu into a block of %zu", offset, block_size);
        is_found(inside, "invalid free");
    }
}

static void on_the_stack(void)
{
    _Alignas(64) char memory[256];
    free(names(memory + 64));
}

static void in_another_mapping(void)
{
    char *memory = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    free(names(memory + 8192 + 64));
}

static void at_the_start_of_a_mapping(void)
{
    free(names(mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
}

static void in_the_program(void)
{
    static _Alignas(64) char memory[256];
    free(names(memory + 64));
}

static void in_a_function(void)
{
    free(names((void *)((uintptr_t)in_the_program / 16 * 16)));
}

static void nowhere(void)
{
    free(names((void *)0x10));
}

static void where_nothing_is_mapped(void)
{
    char *memory = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory, 4 * MIB);
    free(names(memory + 64));
}

static void beyond_the_address_space(void)
{
    free(names((void *)0xdeadbeefdeadbee0));
}

static void realloc_of_foreign_memory(void)
{
    char *memory = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unknown(realloc(names(memory + 64), 1000));
}

static void foreign_memory(void)
{
    is_found(on_the_stack, "invalid free");
    is_found(in_another_mapping, "invalid free");
    is_found(at_the_start_of_a_mapping, "invalid free");
    is_found(in_the_program, "invalid free");
    is_found(in_a_function, "invalid free");
    is_found(realloc_of_foreign_memory, "invalid free");
}

static void addresses_of_nothing(void)
{
    is_found(nowhere, "invalid free");
    is_found(where_nothing_is_mapped, "invalid free");
    is_found(beyond_the_address_space, "invalid free");
}

/* Links of freed blocks that the program wrote over: found before memory is given out twice or at a wrong place. */
static void overwrite(size_t size, unsigned char value)
{
    enum { BLOCKS = 20 };
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(size);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    memset(names(blocks[BLOCKS / 2]), value, 16);
    for (int i = 0; i < 20000; i++)
        unknown(malloc(size));
}

static void with_zero(void)
{
    overwrite(block_size, 0);
}

static void with_letters(void)
{
    overwrite(block_size, 'A');
}

static void with_ones(void)
{
    overwrite(block_size, 0xff);
}

/* With the address of another block, as an attacker would. */
static void with_an_address(void)
{
    enum { BLOCKS = 20 };
    void **blocks[BLOCKS], *target = malloc(block_size);
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = malloc(block_size);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    *(void **)names(blocks[BLOCKS / 2]) = target;
    for (int i = 0; i < 20000; i++)
        unknown(malloc(block_size));
}

static void overwritten_links(void)
{
    const size_t sizes[] = {16, 64, 100, 500, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block_size = sizes[i];
        snprintf(circumstances, sizeof circumstances, "; blocks of %zu", block_size);
        is_found(with_letters, "overwritten");
        is_found(with_ones, "overwritten");
        is_found(with_an_address, "overwritten");
    }
}

/* The end of a list that the program made: blocks behind it must not be lost silently. */
static void overwritten_with_zero(void)
{
    block_size = 64;
    is_found(with_zero, "overwritten");
}

const struct test CASES[] = {
    {"double_frees", double_frees},
    {"double_frees_of_threads", double_frees_of_threads},
    {"double_frees_of_all_sizes", double_frees_of_all_sizes},
    {"double_free_of_a_large_block", double_free_of_a_large_block},
    {"pointers_inside_blocks", pointers_inside_blocks},
    {"foreign_memory", foreign_memory},
    {"addresses_of_nothing", addresses_of_nothing},
    {"overwritten_links", overwritten_links},
    {"overwritten_with_zero", overwritten_with_zero},
    {NULL, NULL},
};
