/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All system calls of the library, and none of base/os_linux.c: tests compile this file so that some fail, with what the C
 * library then says, and their sanitizers have to see what is mapped. */
#define _GNU_SOURCE
#include "os.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

/* Of glibc since 2.35. */
#pragma weak __rseq_offset
#pragma weak __rseq_size
extern const ptrdiff_t __rseq_offset;
extern const unsigned int __rseq_size;

/* struct rseq of the kernel: the node is there since Linux 6.3. */
enum { CPU_IN_RSEQ = 4, NODE_IN_RSEQ = 20, BYTES_WITH_NODE = 24 };

enum { MOST_NODES = 1024, LONG_BITS = 8 * sizeof(long) };

/* For tests: one in N calls fails, of those that get memory (refusals), and of all others (faults), whose failure the library
 * bears. */
#ifndef NUMALLOC_FAULTS
#define NUMALLOC_FAULTS 0
#endif
#ifndef NUMALLOC_REFUSALS
#define NUMALLOC_REFUSALS 0
#endif

static bool fails(unsigned one_in)
{
    static _Atomic uint64_t calls;
    if (!one_in)
        return false;
    uint64_t mixed = (atomic_fetch_add(&calls, 1) + (uint64_t)getpid()) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    if ((mixed >> 33) % one_in)
        return false;
    errno = ENOMEM;
    return true;
}

/* The result of a call, or that of one that fails. */
#define OR_FAULT(call) (fails(NUMALLOC_FAULTS) ? -1 : (call))
#define OR_REFUSAL(call) (fails(NUMALLOC_REFUSALS) ? MAP_FAILED : (call))

/* Keeps errno, and says whether the call succeeded. */
static bool done(long result, int before)
{
    if (result != -1)
        return true;
    errno = before;
    return false;
}

uintptr_t os_page_bytes(void)
{
    return (uintptr_t)getauxval(AT_PAGESZ);
}

bool os_limits_addresses(void)
{
    int before = errno;
    struct rlimit limit;
    return done(OR_FAULT(getrlimit(RLIMIT_AS, &limit)), before) && limit.rlim_cur != RLIM_INFINITY;
}

struct os_window os_window(void)
{
    int before = errno;
    /* The arguments of the program are at the end of what a process can address. */
    uintptr_t near_end = (uintptr_t)getauxval(AT_RANDOM);
    if (!near_end)
        near_end = (uintptr_t)__builtin_frame_address(0);
    uintptr_t top = (uintptr_t)1 << (8 * sizeof top - (size_t)__builtin_clzl(near_end));
    size_t page = os_page_bytes();
    void *probe = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    bool goes_up = probe != MAP_FAILED && (uintptr_t)probe < top / 2;
    if (probe != MAP_FAILED)
        munmap(probe, page);
    errno = before;
    /* The kernel maps from the end down, and programs from two thirds on; without a limit of the stack it maps from one third
     * up. */
    return goes_up ? (struct os_window){top / 16, top / 4} : (struct os_window){top / 4, top / 32 * 13};
}

enum os_mapped os_map(void *from, size_t bytes)
{
    int before = errno, kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void *got = OR_REFUSAL(mmap(from, bytes, PROT_READ | PROT_WRITE, kind, -1, 0));
    if (got == from)
        return OS_MAPPED;
    bool is_occupied = got != MAP_FAILED || errno == EEXIST;
    /* Kernels before 4.17 take the address for a wish. */
    if (got != MAP_FAILED)
        munmap(got, bytes);
    errno = before;
    return is_occupied ? OS_OCCUPIED : OS_NO_MEMORY;
}

bool os_unmap(void *from, size_t bytes)
{
    int before = errno;
    return done(OR_FAULT(munmap(from, bytes)), before);
}

bool os_discard(void *from, size_t bytes)
{
    int before = errno;
    return done(OR_FAULT(madvise(from, bytes, MADV_DONTNEED)), before);
}

bool os_offer(void *from, size_t bytes)
{
    int before = errno;
    return done(OR_FAULT(madvise(from, bytes, MADV_FREE)), before);
}

void os_want_huge(void *from, size_t bytes)
{
    int before = errno;
    (void)done(OR_FAULT(madvise(from, bytes, MADV_HUGEPAGE)), before);
}

/* Whether the range is one mapping to the kernel: of several, growing it where it is fails with another error than for want of
 * room behind it. Where there is room it grows, and what it grew by goes again. */
static bool is_one_mapping(char *from, size_t bytes)
{
    size_t page = os_page_bytes();
    if (mremap(from, bytes, bytes + page, 0) == MAP_FAILED)
        return errno == ENOMEM;
    munmap(from + bytes, page);
    return true;
}

enum os_moved os_move(void *from, void *to, size_t bytes)
{
    int before = errno;
    /* Kernels remove the new range before they look at the old one. Not to find that out too late: */
    if (!is_one_mapping(from, bytes)) {
        errno = before;
        return OS_UNMOVED;
    }
    int how = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    void *moved = fails(NUMALLOC_FAULTS) ? MAP_FAILED : mremap(from, bytes, bytes, how, to);
    if (moved != MAP_FAILED)
        return OS_MOVED;
    int access = PROT_READ | PROT_WRITE, kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    bool is_there = OR_REFUSAL(mmap(to, bytes, access, kind, -1, 0)) != MAP_FAILED;
    errno = before;
    return is_there ? OS_UNMOVED : OS_LOST;
}

bool os_prefer(void *from, size_t bytes, unsigned node)
{
    int before = errno;
    unsigned long nodes[MOST_NODES / LONG_BITS] = {0};
    if (node >= MOST_NODES)
        return false;
    nodes[node / LONG_BITS] |= 1UL << node % LONG_BITS;
    return done(OR_FAULT(syscall(SYS_mbind, from, bytes, MPOL_PREFERRED, nodes, (long)MOST_NODES + 1, 0)), before);
}

/* The node of the calling thread. */
static unsigned node_here(void)
{
    int before = errno;
    unsigned cpu = 0, node = 0;
    if (OR_FAULT(syscall(SYS_getcpu, &cpu, &node, NULL)) != 0)
        node = 0;
    errno = before;
    return node;
}

unsigned os_memory_node(void)
{
    int before = errno, mode = MPOL_DEFAULT;
    unsigned long nodes[MOST_NODES / LONG_BITS] = {0};
    bool is_known = done(OR_FAULT(syscall(SYS_get_mempolicy, &mode, nodes, (long)MOST_NODES, NULL, 0L)), before);
    if (!is_known || mode == MPOL_DEFAULT || mode == MPOL_LOCAL)
        return node_here();
    if (mode != MPOL_PREFERRED)
        return NO_NODE;
    for (unsigned i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (nodes[i])
            return i * (unsigned)LONG_BITS + (unsigned)__builtin_ctzl(nodes[i]);
    /* What older kernels call local. */
    return node_here();
}

long os_set_policy(int mode, const unsigned long *nodes, unsigned long bits)
{
    return syscall(SYS_set_mempolicy, mode, nodes, bits);
}

bool os_read(const char *path, char *text, size_t bytes)
{
    int before = errno;
    /* A thread that is cancelled must not end here, with locks. */
    long file = OR_FAULT(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
    long got = file < 0 ? -1 : OR_FAULT(syscall(SYS_read, file, text, bytes - 1));
    if (file >= 0)
        syscall(SYS_close, file);
    errno = before;
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* A word of a line of numa_maps, and what the words before it told. */
struct page_words {
    char word[40]; /* what is longer tells no pages */
    size_t length;
    bool is_first;
    uintptr_t mapping;
};

/* A word is complete: the address of the mapping, or pages such as N0=3. */
static void end_word(struct page_words *words, os_pages_found *found, void *context)
{
    const char *word = words->word;
    size_t node, pages;
    words->word[words->length] = 0;
    if (words->is_first) {
        words->mapping = 0;
        for (const char *c = word; *c; c++)
            words->mapping = words->mapping << 4 | (uintptr_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
    } else if (*word == 'N' && number_at(word + 1, &node)) {
        const char *equal = strchr(word, '=');
        if (equal && number_at(equal + 1, &pages))
            found(context, words->mapping, (unsigned)node, (uint64_t)pages * os_page_bytes());
    }
    words->is_first = false;
    words->length = 0;
}

bool os_pages(os_pages_found *found, void *context)
{
    int before = errno;
    struct page_words words = {.is_first = true};
    char text[512];
    long got = -1, file = syscall(SYS_openat, AT_FDCWD, "/proc/self/numa_maps", O_RDONLY | O_CLOEXEC);
    while (file >= 0 && (got = syscall(SYS_read, file, text, sizeof text)) > 0) {
        for (const char *c = text; c < text + got; c++) {
            if (*c != ' ' && *c != '\n') {
                if (words.length < sizeof words.word - 1)
                    words.word[words.length++] = *c;
                continue;
            }
            end_word(&words, found, context);
            words.is_first = *c == '\n';
        }
    }
    if (file >= 0)
        syscall(SYS_close, file);
    errno = before;
    return got == 0;
}

unsigned os_node_count(void)
{
    char text[256];
    if (!os_read("/sys/devices/system/node/online", text, sizeof text))
        return 1;
    /* The last number of a list such as 0-3,8. */
    unsigned last = 0, number = 0;
    for (const char *c = text; *c; c++) {
        number = *c >= '0' && *c <= '9' ? number * 10 + (unsigned)(*c - '0') : 0;
        last = number > last ? number : last;
    }
    return last < MOST_NODES ? last + 1 : 1;
}

const _Atomic uint32_t *os_place_word(void)
{
    if (!&__rseq_offset || !&__rseq_size || __rseq_size == 0)
        return NULL;
    bool has_node = getauxval(AT_RSEQ_FEATURE_SIZE) >= BYTES_WITH_NODE;
    char *thread = __builtin_thread_pointer();
    return (const _Atomic uint32_t *)(thread + __rseq_offset + (has_node ? NODE_IN_RSEQ : CPU_IN_RSEQ));
}

uint64_t os_secret(unsigned which)
{
    uint64_t both[2];
    const void *random = (const void *)getauxval(AT_RANDOM);
    if (!random)
        return (uintptr_t)&random * UINT64_C(0x9e3779b97f4a7c15);
    memcpy(both, random, sizeof both);
    return both[which & 1] * UINT64_C(0x9e3779b97f4a7c15);
}

/* The stack of the first thread when the program began: the count of arguments, they, NULL, the environment. */
#pragma weak __libc_stack_end
extern void *__libc_stack_end;

char **os_environment(void)
{
    if (environ || !&__libc_stack_end || !__libc_stack_end)
        return environ;
    long count = *(long *)__libc_stack_end;
    return (char **)__libc_stack_end + 1 + count + 1;
}

size_t os_random(void)
{
    int before = errno;
    size_t random;
    if (OR_FAULT(syscall(SYS_getrandom, &random, sizeof random, 1 /* without waiting */)) != sizeof random)
        random = (size_t)os_secret(0) ^ (size_t)os_secret(1) << 17;
    errno = before;
    return random;
}

uint32_t os_eighths(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint32_t)now.tv_sec * 8 + (uint32_t)(now.tv_nsec / 125000000);
}

void os_wait(_Atomic uint32_t *word, uint32_t value)
{
    int before = errno;
    (void)done(syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0), before);
}

void os_wake(_Atomic uint32_t *word)
{
    int before = errno;
    (void)done(syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), before);
}

void os_print(const char *text, size_t length)
{
    int before = errno;
    while (length > 0) {
        long written = syscall(SYS_write, STDERR_FILENO, text, length);
        if (written <= 0)
            break;
        text += written;
        length -= (size_t)written;
    }
    errno = before;
}

void os_abort(void)
{
    abort();
}
