/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What each function does with requests that cannot be met: nothing else changes. */
#include "cases.h"

#define REFUSED(call, reason)                                                                                          \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        CHECK((call) == NULL && errno == (reason));                                                                    \
    } while (0)

static const size_t TOO_LARGE[] = {
    (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX - 4096, SIZE_MAX,       SIZE_MAX - 1,
    SIZE_MAX - 8,            SIZE_MAX - 15,       SIZE_MAX - 16,              SIZE_MAX - 4095, SIZE_MAX - 4096,
    SIZE_MAX - 2 * MIB,      SIZE_MAX - GIB,      SIZE_MAX / 2 + 4096,        SIZE_MAX / 4 * 3, (size_t)1 << 62,
};
enum { SIZES = sizeof TOO_LARGE / sizeof *TOO_LARGE };

static void huge_sizes(void)
{
    for (int i = 0; i < SIZES; i++) {
        size_t size = unknown_size(TOO_LARGE[i]);
        REFUSED(malloc(size), ENOMEM);
        REFUSED(calloc(1, size), ENOMEM);
        REFUSED(calloc(size, 1), ENOMEM);
        REFUSED(realloc(NULL, size), ENOMEM);
        REFUSED(reallocarray(NULL, size, 1), ENOMEM);
        REFUSED(memalign(64, size), ENOMEM);
        REFUSED(memalign(MIB, size), ENOMEM);
        REFUSED(aligned_alloc(64, size), ENOMEM);
        REFUSED(valloc(size), ENOMEM);
        REFUSED(pvalloc(size), ENOMEM);
        void *block = &block;
        CHECK(posix_memalign(&block, 64, size) == ENOMEM && block == &block);
        CHECK(posix_memalign(&block, 1 * GIB, size) == ENOMEM && block == &block);
    }
    free(memset(malloc(100), 1, 100));
}

static void products_that_overflow(void)
{
    const size_t factors[][2] = {{SIZE_MAX, 2},
                                 {2, SIZE_MAX},
                                 {SIZE_MAX, SIZE_MAX},
                                 {(size_t)1 << 32, (size_t)1 << 32},
                                 {((size_t)1 << 32) + 1, (size_t)1 << 32},
                                 {SIZE_MAX / 16 + 1, 16},
                                 {SIZE_MAX / 3 + 1, 3}};
    char *block = malloc(100);
    memset(block, 7, 100);
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        size_t count = unknown_size(factors[i][0]), size = unknown_size(factors[i][1]);
        REFUSED(calloc(count, size), ENOMEM);
        REFUSED(reallocarray(NULL, count, size), ENOMEM);
        REFUSED(reallocarray(block, count, size), ENOMEM);
        CHECK(block[0] == 7 && block[99] == 7);
    }
    free(block);
}

static void failed_realloc_keeps_the_block(void)
{
    for (size_t size = 1; size <= 16 * MIB; size *= 4) {
        unsigned char *block = malloc(size);
        pattern_write(block, size, size);
        for (int i = 0; i < SIZES; i++) {
            REFUSED(realloc(block, unknown_size(TOO_LARGE[i])), ENOMEM);
            REFUSED(reallocarray(block, unknown_size(TOO_LARGE[i]), 1), ENOMEM);
        }
        CHECK(malloc_usable_size(block) >= size && pattern_is_there(block, size, size, size));
        block = realloc(block, 2 * size);
        CHECK(block && pattern_is_there(block, size, size, size));
        free(block);
    }
}

/* posix_memalign tells by what it returns; errno is another's. */
static void alignments_of_posix_memalign(void)
{
    const size_t wrong[] = {0, 1, 2, 4, 3, 7, 9, 24, 4097, SIZE_MAX, SIZE_MAX - 7, 3 * MIB, (size_t)3 << 62};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        void *block = &block;
        errno = 77;
        CHECK(posix_memalign(&block, unknown_size(wrong[i]), 100) == EINVAL);
        CHECK(errno == 77 && block == &block);
        CHECK(posix_memalign(&block, unknown_size(wrong[i]), unknown_size(SIZE_MAX)) != 0 && block == &block);
    }
    void *block = NULL;
    errno = 77;
    CHECK(posix_memalign(&block, sizeof(void *), 100) == 0 && block && errno == 77);
    free(block);
}

static void huge_alignments(void)
{
    for (size_t alignment = (size_t)1 << 48; alignment; alignment *= 2) {
        errno = 0;
        CHECK(memalign(alignment, unknown_size(100)) == NULL && (errno == ENOMEM || errno == EINVAL));
        errno = 0;
        CHECK(aligned_alloc(alignment, unknown_size(alignment)) == NULL && (errno == ENOMEM || errno == EINVAL));
        void *block = &block;
        int wrong = posix_memalign(&block, alignment, unknown_size(alignment / 2));
        CHECK((wrong == ENOMEM || wrong == EINVAL) && block == &block);
    }
    /* Size and alignment together go beyond the address space. */
    for (size_t alignment = MIB; alignment <= GIB; alignment *= 2) {
        REFUSED(memalign(alignment, unknown_size(SIZE_MAX - alignment / 2)), ENOMEM);
        REFUSED(memalign(alignment, unknown_size(PTRDIFF_MAX - alignment + 1)), ENOMEM);
    }
}

/* Refusals cost no memory and leave no trace. */
static void refusals_cost_nothing(void)
{
    /* What it takes to begin is not counted. */
    free(unknown(malloc(100)));
    size_t before = kib_of_process("VmSize:");
    for (int i = 0; i < 20000; i++) {
        REFUSED(malloc(unknown_size(TOO_LARGE[i % SIZES])), ENOMEM);
        REFUSED(memalign(MIB, unknown_size(TOO_LARGE[i % SIZES])), ENOMEM);
    }
    CHECK(kib_of_process("VmSize:") < before + 16 * 1024);
}

const struct test CASES[] = {
    {"huge_sizes", huge_sizes},
    {"products_that_overflow", products_that_overflow},
    {"failed_realloc_keeps_the_block", failed_realloc_keeps_the_block},
    {"alignments_of_posix_memalign", alignments_of_posix_memalign},
    {"huge_alignments", huge_alignments},
    {"refusals_cost_nothing", refusals_cost_nothing},
    {NULL, NULL},
};
