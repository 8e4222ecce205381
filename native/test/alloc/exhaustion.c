/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* No memory is left: functions say so, nothing else happens, and what is freed serves again. The cases `a_little` and
 * `a_lot` end with status 3 where they were refused memory: others run them under limits. */
#include "cases.h"

enum { PLACES = 20000 };
static void *places[PLACES];

static void limit(int resource, size_t more)
{
    struct rlimit limits;
    size_t now = kib_of_process(resource == RLIMIT_AS ? "VmSize:" : "VmData:") * KIB;
    CHECK(getrlimit(resource, &limits) == 0);
    limits.rlim_cur = now + more;
    CHECK(setrlimit(resource, &limits) == 0);
}

static void no_limit(int resource)
{
    struct rlimit limits;
    CHECK(getrlimit(resource, &limits) == 0);
    limits.rlim_cur = limits.rlim_max;
    CHECK(setrlimit(resource, &limits) == 0);
}

/* Allocates until it is refused, at most 40 MiB; the number of blocks. */
static int fill(uint64_t *state, bool *refused)
{
    size_t bytes = 0;
    for (int i = 0; i < PLACES; i++) {
        size_t size = 16 + (below(state, 40) ? below(state, 3000) : below(state, 400000));
        errno = 0;
        places[i] = below(state, 8) ? malloc(size) : below(state, 2) ? calloc(1, size) : memalign(256, size);
        if (!places[i]) {
            CHECK(errno == ENOMEM);
            *refused = true;
            return i;
        }
        pattern_write(places[i], size, size);
        *(size_t *)places[i] = size;
        bytes += size;
        if (bytes > 40 * MIB)
            return i + 1;
    }
    return PLACES;
}

/* Growing ends in a refusal that leaves the block as it was. */
static void grow(void)
{
    size_t size = 1000;
    unsigned char *block = malloc(size);
    CHECK(block || errno == ENOMEM);
    while (block && size < 50 * MIB) {
        pattern_write(block, size, size);
        errno = 0;
        unsigned char *larger = realloc(block, size * 2);
        if (!larger) {
            CHECK(errno == ENOMEM && pattern_is_there(block, size, size, size));
            break;
        }
        CHECK(pattern_is_there(larger, size, size, size));
        block = larger;
        size *= 2;
    }
    free(block);
}

/* Whether something was refused. */
static bool fill_and_empty(uint64_t state)
{
    bool refused = false;
    for (int round = 0; round < 2; round++) {
        int count = fill(&state, &refused);
        size_t first = count ? *(size_t *)places[0] : 0;
        for (int i = 0; i < count; i++)
            free(places[(i + count / 2) % count]);
        /* What was there is there again. */
        CHECK(count == 0 || (places[0] = malloc(first)));
        if (count)
            free(places[0]);
        free(malloc(16));
        grow();
    }
    return refused;
}

static bool exhaust(int resource, size_t more)
{
    free(malloc(100));
    limit(resource, more);
    bool refused = fill_and_empty(more + 1);
    no_limit(resource);
    char *block = malloc(3 * MIB);
    CHECK(block);
    free(memset(block, 1, 3 * MIB));
    return refused;
}

/* Children exhaust what each limit leaves; they end with status 3 where memory was refused, else 4. */
static void steps(int resource)
{
    int refused = 0, met = 0;
    size_t first_steps = rounds(256, 64) * KIB, last_steps = rounds(8, 2) * MIB;
    /* Higher limits than what is asked for change nothing. */
    for (size_t more = 0; more <= 64 * MIB && met < 4; more += more < 2 * MIB ? first_steps : last_steps) {
        snprintf(circumstances, sizeof circumstances, "; limit of resource %d: %zu KiB more", resource, more / KIB);
        pid_t child = fork();
        if (child == 0)
            _exit(exhaust(resource, more) ? 3 : 4);
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        if (!WIFEXITED(status))
            dprintf(2, "signal %d%s\n", WTERMSIG(status), circumstances);
        CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 4));
        refused += WEXITSTATUS(status) == 3;
        met = WEXITSTATUS(status) == 3 ? 0 : met + 1;
    }
    /* Others may have reserved much address space before; then only the other limit is felt. */
    CHECK(refused > 0 || (resource == RLIMIT_AS && kib_of_process("VmSize:") > 4 * GIB / KIB));
}

static void address_space(void)
{
    steps(RLIMIT_AS);
}

static void data(void)
{
    steps(RLIMIT_DATA);
}

static void *fill_and_free(void *seed)
{
    enum { BLOCKS = 4000 };
    uint64_t state = (uint64_t)(uintptr_t)seed;
    static _Thread_local void *blocks[BLOCKS];
    for (int round = 0; round < 5; round++) {
        int count = 0;
        for (; count < BLOCKS; count++) {
            size_t size = below(&state, 8000);
            errno = 0;
            if (!(blocks[count] = malloc(size)))
                break;
            memset(blocks[count], 1, size);
        }
        CHECK(count == BLOCKS || errno == ENOMEM);
        while (count)
            free(blocks[--count]);
    }
    return NULL;
}

static void threads_without_memory(void)
{
    enum { ENDED = 10 };
    pthread_t threads[4];
    int most = 0;
    for (size_t more = MIB; more < 64 * MIB; more *= 2) {
        pid_t child = fork();
        if (child == 0) {
            int count = 0;
            limit(RLIMIT_AS, more + 34 * MIB);
            while (count < 4 && pthread_create(&threads[count], NULL, fill_and_free, (void *)(more + (unsigned)count)) == 0)
                count++;
            for (int i = 0; i < count; i++)
                joined(threads[i]);
            no_limit(RLIMIT_AS);
            free(memset(malloc(3 * MIB), 1, 3 * MIB));
            _exit(ENDED + count);
        }
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) >= ENDED && WEXITSTATUS(status) <= ENDED + 4);
        most = WEXITSTATUS(status) - ENDED > most ? WEXITSTATUS(status) - ENDED : most;
    }
    /* The largest limit leaves room for stacks. */
    CHECK(most > 1);
}

/* A process may have 65,530 mappings: the kernel then refuses to split one, when blocks are freed too. */
static void too_many_mappings(void)
{
    static void *blocks[64], *aligned[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = memset(malloc(3 * MIB), 1, 3 * MIB);
        aligned[i] = memset(memalign(2 * MIB, 300 * KIB), 1, 300 * KIB);
    }
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = 140000;
    char *memory = mmap(NULL, pages * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (size_t i = 0; i < pages; i += 2)
        if (mprotect(memory + i * page, page, PROT_NONE))
            break;
    for (int i = 0; i < 64; i += 2) {
        free(blocks[i]);
        free(aligned[i]);
    }
    for (size_t size = 16; size <= 8 * MIB; size *= 2) {
        errno = 0;
        char *block = malloc(size);
        CHECK(block || errno == ENOMEM);
        if (block)
            free(memset(block, 1, size));
        char *grown = realloc(blocks[1], 3 * MIB + size);
        CHECK(grown ? grown[3 * MIB - 1] == 1 : ((char *)blocks[1])[3 * MIB - 1] == 1);
        blocks[1] = grown ? grown : blocks[1];
        free(memalign(1 * MIB, size));
    }
    munmap(memory, pages * page);
    for (int i = 1; i < 64; i += 2) {
        free(blocks[i]);
        free(aligned[i]);
    }
    free(memset(malloc(70 * MIB), 1, 70 * MIB));
}

static void *a_few_blocks(void *refused)
{
    enum { BLOCKS = 64 };
    void *blocks[BLOCKS];
    uint64_t state = 5;
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = i % 8 ? 10 + below(&state, 5000) : 200000;
        blocks[i] = i % 5 ? malloc(size) : memalign(4096, size);
        if (blocks[i])
            memset(blocks[i], 1, size);
        else
            *(bool *)refused = true;
    }
    for (int i = 0; i < BLOCKS; i++) {
        void *larger = realloc(blocks[i], 60000);
        if (larger)
            blocks[i] = memset(larger, 2, 60000);
        else
            *(bool *)refused = true;
    }
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    return NULL;
}

/* Blocks of all kinds in two threads, little enough for every computer. */
static void a_little(void)
{
    bool refused = false, there = false;
    pthread_t thread;
    a_few_blocks(&refused);
    if (pthread_create(&thread, NULL, a_few_blocks, &there) == 0)
        joined(thread);
    else
        refused = true;
    _exit(refused || there ? 3 : 0);
}

/* As much as there is, at most 40 MiB at once. */
static void a_lot(void)
{
    _exit(fill_and_empty(1) ? 3 : 0);
}

const struct test CASES[] = {
    {"address_space", address_space},
    {"data", data},
    {"threads_without_memory", threads_without_memory},
    {"too_many_mappings", too_many_mappings},
    {"a_little", a_little},
    {"a_lot", a_lot},
    {NULL, NULL},
};
