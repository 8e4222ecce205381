/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the program does with its addresses: it locks them, limits them, and maps others among those of blocks. */
#include "cases.h"

enum { LARGE = 12, SMALL = 20000, SMALL_BYTES = 1000 };

/* Blocks full of ones, some pages of them locked, are freed; calloc is zero afterwards. */
static void zeros_after(void (*lock)(char *const *blocks), size_t bytes)
{
    char *blocks[LARGE];
    static char *small[SMALL];
    for (int i = 0; i < LARGE; i++)
        blocks[i] = memset(malloc(bytes), 0xff, bytes);
    for (int i = 0; i < SMALL; i++)
        small[i] = memset(malloc(SMALL_BYTES), 0xff, SMALL_BYTES);
    lock(blocks);
    for (int i = 0; i < LARGE; i++)
        free(blocks[i]);
    for (int i = 0; i < SMALL; i++)
        free(small[i]);
    malloc_trim(0);
    for (int i = 0; i < LARGE; i++)
        CHECK(is_zero(blocks[i] = calloc(1, bytes), bytes));
    for (int i = 0; i < SMALL; i++)
        CHECK(is_zero(small[i] = calloc(1, SMALL_BYTES + SMALL_BYTES / 2), SMALL_BYTES + SMALL_BYTES / 2));
    for (int i = 0; i < LARGE; i++)
        free(blocks[i]);
    for (int i = 0; i < SMALL; i++)
        free(small[i]);
}

static void lock_a_page(char *const *blocks)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    CHECK(mlock((void *)(((uintptr_t)blocks[LARGE / 2] + 2 * page) & ~(page - 1)), page) == 0);
}

static void lock_all(char *const *blocks)
{
    (void)blocks;
    /* The memory of a user that may be locked is little; root's has no limit. */
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        printf("skipped in part (privileges): mlockall: %s\n", strerror(errno));
}

static void calloc_is_zero_after_mlock(void)
{
    zeros_after(lock_a_page, 3 * MIB);
}

static void calloc_is_zero_after_mlockall(void)
{
    zeros_after(lock_all, MIB);
    munlockall();
}

/* Little is kept beside a page that is locked. */
static void what_is_not_locked_goes_back(void)
{
    enum { BLOCK = 64 };
    char *block = memset(malloc(BLOCK * MIB), 1, BLOCK * MIB);
    CHECK(mlock((void *)(((uintptr_t)block + 20 * MIB) & ~((uintptr_t)MIB - 1)), 4096) == 0);
    size_t before = kib_of_process("VmRSS:");
    free(block);
    malloc_trim(0);
    CHECK(kib_of_process("VmRSS:") + (BLOCK - 8) * MIB / KIB < before);
}

/* Takes all that there is in blocks of a size, and gives it back. */
static size_t all_of(size_t size)
{
    void **last = NULL, **block;
    size_t bytes = 0;
    for (; (block = malloc(size)); bytes += size) {
        *block = last;
        last = block;
    }
    CHECK(errno == ENOMEM);
    while (last) {
        block = *last;
        free(last);
        last = block;
    }
    return bytes;
}

/* A limit that the program sets when it runs is that of its blocks, of whichever size; what one size no longer needs is there
 * for the others. */
static void a_limit_holds_for_blocks_of_all_sizes(void)
{
    enum { MORE = 400 };
    struct rlimit limits;
    free(malloc(100));
    CHECK(getrlimit(RLIMIT_AS, &limits) == 0);
    limits.rlim_cur = kib_of_process("VmSize:") * KIB + MORE * MIB;
    CHECK(setrlimit(RLIMIT_AS, &limits) == 0);
    const size_t sizes[] = {1000, MIB, 200000, 10000, 100 * MIB, 50};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = all_of(sizes[i]);
        snprintf(circumstances, sizeof circumstances, "; %zu MiB of blocks of %zu", bytes / MIB, sizes[i]);
        CHECK(bytes <= MORE * MIB);
        /* The floor is below what is lost to the classes of sizes. */
        CHECK(bytes >= (sizes[i] < 100 * MIB ? MORE * 3 / 4 : MORE / 2) * MIB);
    }
}

/* A program of nothing takes no addresses to speak of. */
static void few_addresses_are_taken(void)
{
    free(malloc(100));
    free(malloc(MIB));
    CHECK(kib_of_process("VmSize:") < 200 * MIB / KIB);
}

/* Others map pages where blocks would come next: these lie elsewhere, and nobody's content changes. */
static void others_map_pages_among_blocks(void)
{
    enum { BLOCKS = 300, OTHERS = 6 };
    static const size_t ahead[OTHERS] = {2 * MIB, 40 * MIB, 41 * MIB, 130 * MIB, 3 * GIB, 17 * GIB};
    static char *blocks[BLOCKS], *small[SMALL];
    char *others[OTHERS];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int kind = 0; kind < 2; kind++) {
        char *near = memset(malloc(kind ? 100 : MIB), 1, 100);
        for (int i = 0; i < OTHERS; i++) {
            void *place = (void *)(((uintptr_t)near + ahead[i]) & ~(page - 1));
            others[i] = mmap(place, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            CHECK(others[i] != MAP_FAILED);
            memset(others[i], 77, page);
        }
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < BLOCKS; i++) {
                CHECK((blocks[i] = malloc(MIB + (size_t)i)));
                pattern_write(blocks[i], MIB + (size_t)i, (uint64_t)i);
            }
            for (int i = 0; i < SMALL; i++)
                CHECK((small[i] = memset(malloc(SMALL_BYTES), i & 127, SMALL_BYTES)));
            for (int i = 0; i < BLOCKS; i++)
                CHECK(pattern_is_there(blocks[i], MIB + (size_t)i, MIB + (size_t)i, (uint64_t)i));
            for (int i = 0; i < SMALL; i++)
                CHECK(small[i][0] == (i & 127) && small[i][SMALL_BYTES - 1] == (i & 127));
            for (int i = 0; i < OTHERS; i++)
                CHECK(others[i][0] == 77 && memcmp(others[i], others[i] + 1, page - 1) == 0);
            for (int i = 0; i < BLOCKS; i++)
                free(blocks[(i * 7 + 3) % BLOCKS]);
            for (int i = 0; i < SMALL; i++)
                free(small[i]);
            CHECK((blocks[0] = calloc(100, MIB)) && is_zero(blocks[0], 100 * MIB));
            free(blocks[0]);
        }
        free(near);
    }
}

const struct test CASES[] = {
    {"calloc_is_zero_after_mlock", calloc_is_zero_after_mlock},
    {"calloc_is_zero_after_mlockall", calloc_is_zero_after_mlockall},
    {"what_is_not_locked_goes_back", what_is_not_locked_goes_back},
    {"a_limit_holds_for_blocks_of_all_sizes", a_limit_holds_for_blocks_of_all_sizes},
    {"few_addresses_are_taken", few_addresses_are_taken},
    {"others_map_pages_among_blocks", others_map_pages_among_blocks},
    {NULL, NULL},
};
