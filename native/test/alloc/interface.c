/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What each function promises when there is memory. */
#include "cases.h"

/* Sizes around all powers of two to 16 MiB, and all small ones. */
static void for_sizes(void (*run)(size_t))
{
    for (size_t size = 0; size < 1100; size++)
        run(size);
    for (size_t power = 1024; power <= (SANITIZED ? 1 * MIB : 16 * MIB); power *= 2) {
        const size_t sizes[] = {power - 1, power, power + 1, power + 16, power + power / 4, power + power / 2 + 1};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            run(sizes[i]);
    }
}

static void one_size(size_t size)
{
    enum { BLOCKS = 5 };
    unsigned char *blocks[BLOCKS];
    for (uint64_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size);
        CHECK(blocks[i] && malloc_usable_size(blocks[i]) >= size);
        CHECK(is_aligned(blocks[i], size >= 16 ? 16 : 8));
        for (uint64_t other = 0; other < i; other++)
            CHECK(blocks[other] != blocks[i]);
        pattern_write(blocks[i], size, i + size);
    }
    for (uint64_t i = 0; i < BLOCKS; i++)
        CHECK(pattern_is_there(blocks[i], size, size, i + size));
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[(i * 3 + 1) % BLOCKS]);
}

static void every_size(void)
{
    for_sizes(one_size);
}

/* All that malloc_usable_size names may be written. */
static void usable(size_t size)
{
    unsigned char *first = malloc(size), *second = malloc(size);
    size_t bytes = malloc_usable_size(first), others = malloc_usable_size(second);
    memset(first, 1, bytes);
    memset(second, 2, others);
    CHECK(bytes == 0 || (first[0] == 1 && first[bytes - 1] == 1));
    first = realloc(first, bytes);
    CHECK(bytes == 0 || (first && first[0] == 1 && first[bytes - 1] == 1));
    free(first);
    CHECK(others == 0 || (second[0] == 2 && second[others - 1] == 2));
    free(second);
}

static void usable_size(void)
{
    CHECK(malloc_usable_size(NULL) == 0);
    for (size_t size = 0; size < 1100; size++)
        usable(size);
    for (size_t size = 1000; size < 8 * MIB; size += size / 3)
        usable(size);
}

static void zero_sizes(void)
{
    enum { BLOCKS = 1000 };
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        void *aligned = NULL;
        switch (i % 6) {
        case 0: blocks[i] = malloc(unknown_size(0)); break;
        case 1: blocks[i] = calloc(unknown_size(0), 7); break;
        case 2: blocks[i] = calloc(7, unknown_size(0)); break;
        case 3: blocks[i] = realloc(NULL, unknown_size(0)); break;
        case 4: blocks[i] = memalign(64, unknown_size(0)); break;
        default: CHECK(posix_memalign(&aligned, 32, 0) == 0); blocks[i] = aligned;
        }
        CHECK(blocks[i]);
        for (int other = 0; other < i; other++)
            CHECK(blocks[other] != blocks[i]);
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    free(unknown(NULL));
}

static void aligned_of_size(size_t alignment, size_t size)
{
    void *blocks[3] = {aligned_alloc(alignment, unknown_size(size)), memalign(alignment, unknown_size(size)), NULL};
    if (alignment >= sizeof(void *))
        CHECK(posix_memalign(&blocks[2], alignment, size) == 0);
    else
        blocks[2] = malloc(size);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK(is_aligned(blocks[i], alignment) && malloc_usable_size(blocks[i]) >= size);
        pattern_write(blocks[i], size, i + size);
    }
    for (uint64_t i = 0; i < 3; i++) {
        CHECK(pattern_is_there(blocks[i], size, size, i + size));
        free(blocks[i]);
    }
}

static void alignments(void)
{
    for (size_t alignment = 1; alignment <= 1 * GIB; alignment *= 2) {
        const size_t sizes[] = {0, 1, 24, 100, 4096, 5000, 70000};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            aligned_of_size(alignment, sizes[i]);
        if (alignment <= 4 * MIB) {
            aligned_of_size(alignment, alignment);
            aligned_of_size(alignment, alignment - 1);
            aligned_of_size(alignment, 3 * alignment + 8);
        }
    }
}

/* Blocks with an alignment take the ways of all others. */
static void aligned_blocks_grow(void)
{
    for (size_t alignment = 16; alignment <= 4 * MIB; alignment *= 2)
        for (size_t size = 8; size <= 2 * MIB; size *= 7) {
            unsigned char *block = memalign(alignment, size);
            CHECK(is_aligned(block, alignment));
            pattern_write(block, size, alignment);
            block = realloc(block, 3 * size);
            CHECK(is_aligned(block, 16) && pattern_is_there(block, size, size, alignment));
            pattern_write(block, 3 * size, size);
            block = realloc(block, size / 2);
            CHECK(block && pattern_is_there(block, 3 * size, size / 2, size));
            free(block);
        }
}

/* Alignments that are no power of two are refused or rounded up. */
static void odd_alignments(void)
{
    const size_t odd[] = {0, 3, 24, 48, 1000, 4097, 3 * MIB};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        errno = 0;
        void *block = aligned_alloc(unknown_size(odd[i]), 100);
        CHECK(block ? is_aligned(block, 16) : errno == EINVAL);
        free(block);
        errno = 0;
        block = memalign(unknown_size(odd[i]), 100);
        size_t rounded = 16;
        while (rounded < odd[i])
            rounded *= 2;
        CHECK(block ? is_aligned(block, rounded) : errno == EINVAL);
        /* The C library rounds up. */
        CHECK(block || !is_allocator("libnumalloc.so"));
        free(block);
    }
}

#ifndef NUMALLOC_PREFIX
/* The C library has second names for its functions. Their blocks go to `free` too. */
static void second_names(void)
{
    void *(*second_malloc)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "__libc_malloc");
    void *(*second_calloc)(size_t, size_t) = (void *(*)(size_t, size_t))dlsym(RTLD_DEFAULT, "__libc_calloc");
    void *(*second_realloc)(void *, size_t) = (void *(*)(void *, size_t))dlsym(RTLD_DEFAULT, "__libc_realloc");
    void *(*second_memalign)(size_t, size_t) = (void *(*)(size_t, size_t))dlsym(RTLD_DEFAULT, "__libc_memalign");
    void (*second_free)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "__libc_free");
    if (!has_function("__libc_malloc"))
        return;
    for (size_t size = 1; size < MIB; size *= 3) {
        free(memset(second_malloc(size), 1, size));
        free(second_realloc(memset(second_calloc(size, 2), 1, 2 * size), 3 * size));
        free(memset(second_memalign(64, size), 1, size));
        second_free(memset(malloc(size), 1, size));
    }
}
#endif

static void whole_pages(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t size = 0; size < 5 * page; size += 511) {
        void *block = valloc(unknown_size(size));
        CHECK(is_aligned(block, page) && malloc_usable_size(block) >= size);
        memset(block, 3, size);
        free(block);
        if (!has_function("pvalloc"))
            continue;
        block = pvalloc(unknown_size(size));
        CHECK(is_aligned(block, page) && malloc_usable_size(block) >= (size + page - 1) / page * page);
        memset(block, 3, (size + page - 1) / page * page);
        free(block);
    }
}

static void realloc_keeps_content(void)
{
    for (size_t first = 1; first <= 4096; first = first * 2 + 3) {
        size_t size = first;
        unsigned char *block = realloc(NULL, size);
        CHECK(block);
        pattern_write(block, size, first);
        while (size < 48 * MIB) {
            size_t larger = size + size / 2 + 1;
            block = realloc(block, larger);
            CHECK(is_aligned(block, larger >= 16 ? 16 : 8) && malloc_usable_size(block) >= larger);
            CHECK(pattern_is_there(block, size, size, first));
            pattern_write(block, larger, first);
            size = larger;
        }
        while (size > 1) {
            size_t smaller = size / 2;
            block = realloc(block, smaller);
            CHECK(block && pattern_is_there(block, size, smaller, first));
            pattern_write(block, smaller, first);
            size = smaller;
        }
        free(block);
    }
}

/* The same size again, one more and one less: every block that borders on others stays as it is. */
static void realloc_in_small_steps(void)
{
    for (size_t size = 1; size < 3 * MIB; size += size / 5 + 1) {
        unsigned char *block = malloc(size), *neighbour = malloc(size);
        pattern_write(block, size, 1);
        pattern_write(neighbour, size, 2);
        block = realloc(block, size);
        CHECK(pattern_is_there(block, size, size, 1));
        block = realloc(block, size + 1);
        CHECK(pattern_is_there(block, size, size, 1));
        block[size] = 9;
        block = realloc(block, size + 4096);
        CHECK(pattern_is_there(block, size, size, 1) && block[size] == 9);
        memset(block + size, 9, 4096);
        CHECK(pattern_is_there(neighbour, size, size, 2));
        free(neighbour);
        free(block);
    }
}

/* Nothing is left whether the block or nothing comes back. */
static void realloc_to_nothing(void)
{
    size_t before = kib_of_process("VmRSS:");
    for (int i = 0; i < 100000; i++) {
        size_t size = i % 1000 ? 1000 : 300 * KIB;
        char *block = malloc(size);
        CHECK(block);
        memset(block, 1, size);
        free(realloc(block, unknown_size(0)));
    }
    CHECK(kib_of_process("VmRSS:") < before + 24 * 1024);
}

static void arrays(void)
{
    char *block = reallocarray(NULL, 10, 100);
    CHECK(block && malloc_usable_size(block) >= 1000);
    memset(block, 4, 1000);
    block = reallocarray(block, 1000, 1000);
    CHECK(block && block[0] == 4 && block[999] == 4);
    block = reallocarray(block, 5, 5);
    CHECK(block && block[24] == 4);
    free(block);
}

/* What is used again is zero as well. */
static void recycled(size_t size)
{
    enum { BLOCKS = 8 };
    unsigned char *blocks[BLOCKS];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            size_t count = i % 2 ? size : 1;
            blocks[i] = calloc(count, size / (count ? count : 1));
            CHECK(blocks[i] && is_zero(blocks[i], count ? size / count * count : 0));
            memset(blocks[i], 0xff, malloc_usable_size(blocks[i]));
        }
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[(i + round) % BLOCKS]);
    }
}

static void calloc_is_zero(void)
{
    for (size_t size = 0; size < 1100; size++)
        recycled(size);
    for (size_t size = 1100; size < 6 * MIB; size += size / 5)
        recycled(size);
}

/* A large block that was used in part, shrunk and grown. */
static void calloc_of_large_is_zero(void)
{
    for (size_t size = 100 * KIB; size <= 24 * MIB; size = size * 3 / 2) {
        char *block = malloc(size);
        memset(block, 5, size);
        block = realloc(block, size / 3);
        CHECK(block && block[size / 3 - 1] == 5);
        char *zero = calloc(1, size / 2);
        CHECK(zero && is_zero(zero, size / 2));
        free(block);
        char *all = calloc(size, 1);
        CHECK(all && is_zero(all, size));
        free(zero);
        memset(all, 6, size);
        free(all);
    }
}

static void errno_is_kept(void)
{
    for (size_t size = 1; size <= 64 * MIB; size *= 2) {
        char *block = malloc(size);
        CHECK(block);
        memset(block, 1, size);
        errno = 77;
        free(block);
        CHECK(errno == 77);
        errno = 78;
        block = malloc(size);
        CHECK(block && errno == 78);
        block = realloc(block, 2 * size);
        CHECK(block && errno == 78);
        free(block);
        CHECK(errno == 78);
        free(NULL);
        CHECK(errno == 78);
    }
}

static void frees_with_sizes(void)
{
    void (*with_size)(void *, size_t) = NULL;
    void (*with_alignment)(void *, size_t, size_t) = NULL;
#ifdef NUMALLOC_PREFIX
    with_size = free_sized;
    with_alignment = free_aligned_sized;
#else
    *(void **)&with_size = dlsym(RTLD_DEFAULT, "free_sized");
    *(void **)&with_alignment = dlsym(RTLD_DEFAULT, "free_aligned_sized");
#endif
    if (!with_size || !with_alignment) {
        puts("skipped in part (machine): free_sized: this C library has none");
        return;
    }
    for (int round = 0; round < 100; round++)
        for (size_t size = 0; size < 3 * MIB; size = size * 2 + 1) {
            with_size(memset(malloc(size), 1, size), size);
            with_size(calloc(size, 3), size * 3);
            with_size(realloc(malloc(size / 2), size + 1), size + 1);
            for (size_t alignment = 8; alignment <= 64 * KIB; alignment *= 16)
                with_alignment(aligned_alloc(alignment, size / alignment * alignment), alignment,
                               size / alignment * alignment);
        }
    errno = 5;
    with_size(NULL, 100);
    with_alignment(NULL, 64, 128);
    CHECK(errno == 5);
}

static void trim(void)
{
    char *blocks[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = malloc(MIB + i);
        pattern_write(blocks[i], MIB + i, (uint64_t)i);
    }
    for (int i = 0; i < 64; i += 2)
        free(blocks[i]);
    int trimmed = malloc_trim(0);
    CHECK(trimmed == 0 || trimmed == 1);
    for (int i = 1; i < 64; i += 2) {
        CHECK(pattern_is_there(blocks[i], MIB + i, MIB + i, (uint64_t)i));
        free(blocks[i]);
    }
    CHECK(malloc_trim(SIZE_MAX) <= 1 && malloc_trim(4096) >= 0);
    free(memset(malloc(10 * MIB), 1, 10 * MIB));
}

/* What is in use goes up and down with what the program holds. */
static void statistics(void)
{
    if (!has_function("mallinfo2")) {
        puts("skipped in part (machine): mallinfo2 is not of this allocator");
        return;
    }
    static void *blocks[1000];
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 1000; i++)
        blocks[i] = memset(malloc(10000), 1, 10000);
    void *large = memset(malloc(32 * MIB), 1, 32 * MIB);
    struct mallinfo2 during = mallinfo2();
    for (int i = 0; i < 1000; i++)
        free(blocks[i]);
    free(large);
    struct mallinfo2 after = mallinfo2();
    size_t grown = during.uordblks + during.hblkhd - before.uordblks - before.hblkhd;
    CHECK(grown >= 42 * MIB - MIB && grown < 60 * MIB);
    CHECK(after.uordblks + after.hblkhd + 41 * MIB < during.uordblks + during.hblkhd + 2 * MIB);
}

#ifndef NUMALLOC_PREFIX
/* Blocks that the C library allocates go to the same free. */
static void blocks_of_the_c_library(void)
{
    for (int i = 0; i < 1000; i++) {
        char *copy = strdup("a text"), *printed = NULL, *line = NULL, *memory = NULL;
        size_t bytes = 0, lines = 0;
        CHECK(copy && malloc_usable_size(copy) >= 7);
        CHECK(asprintf(&printed, "%0*d", i * 10 + 1, 5) == i * 10 + 1);
        FILE *stream = open_memstream(&memory, &bytes);
        CHECK(stream && fprintf(stream, "%s\n", printed) > 0 && fclose(stream) == 0);
        stream = fmemopen(memory, bytes, "r");
        CHECK(stream && getline(&line, &lines, stream) == i * 10 + 2);
        fclose(stream);
        char *path = realpath("/proc/self/exe", NULL);
        CHECK(path);
        free(copy);
        free(printed);
        free(line);
        free(memory);
        free(path);
    }
}

/* No block of one allocator comes to the free of another. */
static void all_are_of_one_library(void)
{
    const char *const names[] = {"calloc",   "realloc", "reallocarray", "free",        "aligned_alloc", "posix_memalign",
                                 "memalign", "valloc",  "pvalloc",      "malloc_trim", "mallinfo2",     "malloc_usable_size"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!has_function(names[i]))
            dprintf(2, "%s is of another library than malloc\n", names[i]);
        CHECK(has_function(names[i]));
    }
    /* Those of C23: all of them or none. */
    CHECK(has_function("free_sized") == has_function("free_aligned_sized"));
}
#endif

/* Large blocks of one size do not all compete for the same sets of a cache. Other allocators may do as they like. */
static void large_blocks_begin_at_different_places(void)
{
    if (!is_allocator("libnumalloc"))
        return;
    enum { BLOCKS = 16, LEAST = 6 };
    for (size_t size = 512 * KIB; size <= 8 * MIB; size *= 2) {
        void *blocks[BLOCKS];
        bool seen[4096 / 64] = {false};
        int places = 0;
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(size);
            CHECK(blocks[i]);
            bool *place = &seen[(uintptr_t)blocks[i] % 4096 / 64];
            places += !*place;
            *place = true;
        }
        if (places < LEAST)
            dprintf(2, "%d blocks of %zu KiB begin at %d places of a page\n", BLOCKS, size / KIB, places);
        CHECK(places >= LEAST);
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
}

const struct test CASES[] = {
    {"large_blocks_begin_at_different_places", large_blocks_begin_at_different_places},
    {"every_size", every_size},
    {"usable_size", usable_size},
    {"zero_sizes", zero_sizes},
    {"alignments", alignments},
    {"aligned_blocks_grow", aligned_blocks_grow},
    {"odd_alignments", odd_alignments},
    {"whole_pages", whole_pages},
    {"realloc_keeps_content", realloc_keeps_content},
    {"realloc_in_small_steps", realloc_in_small_steps},
    {"realloc_to_nothing", realloc_to_nothing},
    {"arrays", arrays},
    {"calloc_is_zero", calloc_is_zero},
    {"calloc_of_large_is_zero", calloc_of_large_is_zero},
    {"errno_is_kept", errno_is_kept},
    {"frees_with_sizes", frees_with_sizes},
    {"trim", trim},
    {"statistics", statistics},
#ifndef NUMALLOC_PREFIX
    {"blocks_of_the_c_library", blocks_of_the_c_library},
    {"second_names", second_names},
    {"all_are_of_one_library", all_are_of_one_library},
#endif
    {NULL, NULL},
};
