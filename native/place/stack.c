/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "stack.h"
#include "messages.h"
#include "os.h"
#include "settings.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* In the loader: where the main thread's stack starts. */
extern void *__libc_stack_end;

enum {
    PTHREAD_BYTES_OF_GLIBC_2_36 = 2304,
    /* For a stack whose bottom is unknown. */
    MAX_BYTES = 64 << 20,
};

static uintptr_t page = 4096;
/* Sizes of static storage below and above pthread_self(). */
static uintptr_t below_self, above_self = PTHREAD_BYTES_OF_GLIBC_2_36;
static atomic_bool cannot;

void stack_begin(void)
{
    page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const unsigned *bytes = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread");
    size_t (*least)(const pthread_attr_t *) = dlsym(RTLD_DEFAULT, "__pthread_get_minstack");
    uintptr_t storage = 0;
    pthread_attr_t plain;
    if (least && pthread_attr_init(&plain) == 0) {
        /* A page, this storage, and at least 16 KiB. */
        uintptr_t all = least(&plain), rest = page + (16 << 10);
        storage = all > rest ? all - rest : 0;
        pthread_attr_destroy(&plain);
    }
    if (bytes)
        above_self = *bytes;
#if defined(__x86_64__) || defined(__i386__) || defined(__s390x__)
    below_self = storage > above_self ? storage - above_self : 0;
#else
    above_self += storage;
#endif
}

static uintptr_t page_up(uintptr_t address)
{
    return (address + page - 1) / page * page;
}

static uintptr_t self_address(void)
{
    return (uintptr_t)pthread_self();
}

uintptr_t stack_top(void)
{
    return page_up(self_address() + above_self);
}

/* The main thread's storage is not in its stack, whose bottom is unknown. */
static bool is_main(uintptr_t bottom)
{
    return !bottom && os_is_main_thread();
}

static uintptr_t top_of(bool is_main)
{
    return is_main ? page_up((uintptr_t)__libc_stack_end) : stack_top();
}

/* Fresh stacks are on their nodes without it: only memory that was used elsewhere stays there. */
static void refused(const char *what, int error)
{
    if (atomic_exchange(&cannot, true))
        return;
    print_if_verbose("%s: %s. Stacks that were used on another node stay there%s", what, strerror(error),
        error == EPERM ? "; a seccomp filter refuses it" : "");
}

/* Moves at most MAX_PAGES pages from `from` on. */
static void move_some(int node, uintptr_t from, int count)
{
    void *pages[MAX_PAGES] = {0};
    int nodes[MAX_PAGES], elsewhere = 0;
    for (int i = 0; i < count; i++)
        pages[i] = (void *)(from + (uintptr_t)i * page);
    int error = os_nodes(pages, count, nodes);
    if (error) {
        refused("cannot query the nodes of pages", error);
        return;
    }
    for (int i = 0; i < count; i++)
        if (nodes[i] >= 0 && nodes[i] != node)
            pages[elsewhere++] = pages[i];
    /* Moving pages drains the page lists of all CPUs, so it is only done if necessary. */
    error = elsewhere ? os_move(pages, elsewhere, node) : 0;
    if (error == ENODEV || error == EACCES || error == EINVAL)
        node_mark_without_memory(node);
    else if (error == ENOSYS || error == EPERM)
        refused("cannot move pages", error);
}

static void move_range(int node, uintptr_t from, uintptr_t to)
{
    for (uintptr_t at = from / page * page; at < to && !atomic_load(&cannot);) {
        uintptr_t left = (to - at + page - 1) / page;
        int count = left < MAX_PAGES ? (int)left : MAX_PAGES;
        move_some(node, at, count);
        at += (uintptr_t)count * page;
    }
}

void stack_move(int node, uintptr_t bottom, size_t below)
{
    bool of_main = is_main(bottom);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), top = top_of(of_main);
    uintptr_t lowest = bottom ? bottom : top - (top > MAX_BYTES ? MAX_BYTES : top);
    if (!node_has_memory(node) || atomic_load(&cannot))
        return;
    /* Otherwise the thread is on another stack, such as a coroutine's. */
    bool on_stack = here >= lowest && here < top;
    /* Also below the stack pointer: the loader used more. Unmapped pages are not moved. */
    if (on_stack)
        move_range(node, here - lowest > below ? here - below : lowest, top);
    if (!on_stack || of_main)
        move_range(node, self_address() - below_self, page_up(self_address() + above_self));
}

void stack_prefer(int node, uintptr_t bottom)
{
    bool of_main = is_main(bottom);
    uintptr_t top = top_of(of_main), here = (uintptr_t)__builtin_frame_address(0) / page * page;
    if (!node_has_memory(node))
        return;
    int error = 0;
    if (bottom && bottom < top) {
        error = os_prefer(page_up(bottom), top, node);
    } else if (of_main && here < top && top - here < MAX_BYTES) {
        error = os_prefer(here, top, node);
        /* Down to its present end: the preference extends as the stack grows. */
        while (error == 0 && top - here < MAX_BYTES && os_prefer(here - page, here, node) == 0)
            here -= page;
    }
    if (error == EINVAL)
        node_mark_without_memory(node);
    else if (error)
        warn_once(NO_POLICY, "cannot set a memory policy: %s. Stacks may be on other nodes", strerror(error));
}
