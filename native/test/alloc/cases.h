/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PROGRAM CASE     runs a case and prints nothing; a failed check ends the process with status 1 and prints where.
 * PROGRAM list     prints the names of the cases.
 *
 * Cases call the allocator by the standard's names. With NUMALLOC_PREFIX these are the functions with that prefix, of
 * sources that are compiled in: a sanitizer then keeps its own malloc. */
#ifndef CASES_H
#define CASES_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef NUMALLOC_PREFIX
#define PASTED(prefix, name) prefix##name
#define PREFIXED(prefix, name) PASTED(prefix, name)
#define malloc PREFIXED(NUMALLOC_PREFIX, malloc)
#define calloc PREFIXED(NUMALLOC_PREFIX, calloc)
#define realloc PREFIXED(NUMALLOC_PREFIX, realloc)
#define reallocarray PREFIXED(NUMALLOC_PREFIX, reallocarray)
#define free PREFIXED(NUMALLOC_PREFIX, free)
#define free_sized PREFIXED(NUMALLOC_PREFIX, free_sized)
#define free_aligned_sized PREFIXED(NUMALLOC_PREFIX, free_aligned_sized)
#define aligned_alloc PREFIXED(NUMALLOC_PREFIX, aligned_alloc)
#define posix_memalign PREFIXED(NUMALLOC_PREFIX, posix_memalign)
#define memalign PREFIXED(NUMALLOC_PREFIX, memalign)
#define valloc PREFIXED(NUMALLOC_PREFIX, valloc)
#define pvalloc PREFIXED(NUMALLOC_PREFIX, pvalloc)
#define malloc_usable_size PREFIXED(NUMALLOC_PREFIX, malloc_usable_size)
#define malloc_trim PREFIXED(NUMALLOC_PREFIX, malloc_trim)
/* The structure has the same name. */
#define mallinfo2(...) PREFIXED(NUMALLOC_PREFIX, mallinfo2)(__VA_ARGS__)
void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void *reallocarray(void *, size_t, size_t);
void free(void *);
void free_sized(void *, size_t);
void free_aligned_sized(void *, size_t, size_t);
void *aligned_alloc(size_t, size_t);
int posix_memalign(void **, size_t, size_t);
void *memalign(size_t, size_t);
void *valloc(size_t);
void *pvalloc(size_t);
size_t malloc_usable_size(void *);
int malloc_trim(size_t);
struct mallinfo2 mallinfo2(void);
#endif

/* Compiled with a sanitizer: cases are short, and memory is not counted. */
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* What a failed check prints too, such as the seed. */
extern char circumstances[128];

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            dprintf(2, "%s:%d: not so: %s (errno %d)%s\n", __FILE__, __LINE__, #condition, errno, circumstances);      \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* How often something is repeated: `usually` as every submission needs it, `thoroughly` with `cargo xtask test --thorough`. */
static inline int rounds(int usually, int thoroughly)
{
    return getenv("NUMAKIT_THOROUGH") ? thoroughly : usually;
}

struct test {
    const char *name;
    void (*run)(void);
};

/* The cases of this program, up to one without a name. */
extern const struct test CASES[];

/* The compiler knows nothing of the value that comes back. */
static inline void *unknown(void *block)
{
    __asm__ volatile("" : "+r"(block));
    return block;
}

static inline size_t unknown_size(size_t size)
{
    __asm__ volatile("" : "+r"(size));
    return size;
}

static inline bool is_aligned(const void *block, size_t alignment)
{
    return block && (uintptr_t)block % alignment == 0;
}

/* Numbers that look random and follow from the state, which is not 0. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    return *state = x ^ x << 17;
}

static inline uint64_t below(uint64_t *state, uint64_t limit)
{
    return (next_random(state) >> 16) % limit;
}

/* The n-th value of a block's pattern. */
static inline unsigned char pattern(uint64_t key, size_t at)
{
    return (unsigned char)((key + at * 0x9e3779b97f4a7c15u) >> 56);
}

/* The next place of a pattern: every byte of small blocks and of both ends, else one byte or two of a page. */
static inline size_t pattern_next(size_t at, size_t size)
{
    enum { END = 1024, STEP = 2039 };
    return at < END || at + STEP + END >= size ? at + 1 : at + STEP;
}

static inline void pattern_write(void *block, size_t size, uint64_t key)
{
    for (size_t at = 0; at < size; at = pattern_next(at, size))
        ((unsigned char *)block)[at] = pattern(key, at);
}

/* Whether the first `kept` bytes are those of a pattern that was written for `size`. */
static inline bool pattern_is_there(const void *block, size_t size, size_t kept, uint64_t key)
{
    for (size_t at = 0; at < kept; at = pattern_next(at, size))
        if (((const unsigned char *)block)[at] != pattern(key, at))
            return false;
    return true;
}

static inline bool is_zero(const void *block, size_t size)
{
    const unsigned char *bytes = block;
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* A number of KiB that the kernel tells of this process, such as "VmRSS". */
static inline size_t kib_of_process(const char *name)
{
    char text[4096];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = read(file, text, sizeof text - 1);
    close(file);
    CHECK(bytes > 0);
    text[bytes] = 0;
    const char *at = strstr(text, name);
    CHECK(at);
    return strtoul(at + strlen(name) + 1, NULL, 10);
}

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* How long tests that can go on do so, as the environment says; else these. */
static inline double soak_seconds(double otherwise)
{
    const char *text = getenv("ALLOC_SOAK_SECONDS");
    return text ? strtod(text, NULL) : otherwise;
}

/* Ends well when the child ended with this status. */
static inline void wait_for(pid_t child, int expected)
{
    int status;
    CHECK(child > 0);
    while (waitpid(child, &status, 0) < 0)
        CHECK(errno == EINTR);
    if (WIFSIGNALED(status))
        dprintf(2, "a child ended by signal %d\n", WTERMSIG(status));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

static inline pthread_t started(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, argument) == 0);
    return thread;
}

static inline void joined(pthread_t thread)
{
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Whether a function exists and comes from where malloc does: an allocator may lack some, whose blocks its free does
 * not know. */
bool has_function(const char *name);

/* Whether malloc is that of the library with this name, or a compiled-in one. */
bool is_allocator(const char *library);

#endif
