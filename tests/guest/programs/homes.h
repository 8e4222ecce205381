/* Where the touched pages of threads are: a thread calls homes_look after it has touched what it
 * likes, and is distinguished by what its pages are: stack with control block and static thread-local
 * storage, of the main thread those without arguments and environment, which are counted apart. */
#ifndef HOMES_H
#define HOMES_H

#include "placement.h"
#include <pthread.h>

/* As much as 12 KiB that have values and 40 KiB that are zero. */
static __thread volatile char homes_values[12 << 10] = {1};
static __thread volatile char homes_zeros[40 << 10];

struct homes {
    long threads, unbound, home, elsewhere, arguments_elsewhere;
};

static struct homes homes;
static pthread_mutex_t homes_lock = PTHREAD_MUTEX_INITIALIZER;

extern void *__libc_stack_end;

/* The CPU that the thread is bound to, -1 if it may run on several. */
static inline int homes_cpu(void)
{
    int cpus[2];
    return allowed_cpus(cpus, 2) == 1 ? cpus[0] : -1;
}

static inline void homes_count(int node, const void *from, const void *to, long *home, long *elsewhere)
{
    long pages[MAX_NODES] = {0};
    uintptr_t first = (uintptr_t)from / PAGE * PAGE;
    uintptr_t last = ((uintptr_t)to + PAGE - 1) / PAGE * PAGE;
    if (first < last)
        count_pages((void *)first, last - first, pages);
    for (int at = 0; at < MAX_NODES; at++)
        *(at == node ? home : elsewhere) += pages[at];
}

/* Touches so much of the stack. */
static inline void homes_touch(size_t bytes)
{
    volatile char *array = __builtin_alloca_with_align(bytes, 8 * PAGE);
    for (size_t at = 0; at < bytes; at += PAGE)
        array[at] = 1;
    for (size_t at = 0; at < sizeof homes_zeros; at += 64)
        homes_zeros[at]++;
    for (size_t at = 0; at < sizeof homes_values; at += 64)
        homes_values[at]++;
}

/* One line for the calling thread; its pages are added to the sum. */
static inline void homes_look(const char *name, int index)
{
    long home = 0, elsewhere = 0, arguments_home = 0, arguments = 0;
    int cpu = homes_cpu();
    int node = node_of_cpu(cpu < 0 ? sched_getcpu() : cpu);
    pthread_attr_t own;
    size_t bytes;
    void *lowest;
    if (pthread_getattr_np(pthread_self(), &own) || pthread_attr_getstack(&own, &lowest, &bytes))
        fail("cannot ask where the stack is");
    pthread_attr_destroy(&own);
    char *top = (char *)lowest + bytes;
    if (syscall(SYS_gettid) == getpid()) {
        /* The kernel laid the arguments down before the program ran. */
        char *end = (char *)((uintptr_t)__libc_stack_end / PAGE * PAGE);
        homes_count(node, lowest, end, &home, &elsewhere);
        homes_count(node, end, top, &arguments_home, &arguments);
        homes_count(node, (char *)homes_values, (char *)homes_values + sizeof homes_values, &home, &elsewhere);
        homes_count(node, (char *)homes_zeros, (char *)homes_zeros + sizeof homes_zeros, &home, &elsewhere);
    } else {
        homes_count(node, lowest, top, &home, &elsewhere);
    }
    pthread_mutex_lock(&homes_lock);
    printf("thread %s %d cpu %d node %d home %ld elsewhere %ld\n", name, index, cpu, node, home, elsewhere);
    homes.threads++;
    homes.arguments_elsewhere += arguments;
    if (cpu < 0) {
        homes.unbound++;
    } else {
        homes.home += home;
        homes.elsewhere += elsewhere;
    }
    pthread_mutex_unlock(&homes_lock);
}

/* The sums over all bound threads. */
static inline void homes_print(void)
{
    printf("threads %ld\nunbound %ld\npages_at_home %ld\npages_elsewhere %ld\nargument_pages_elsewhere %ld\n",
           homes.threads, homes.unbound, homes.home, homes.elsewhere, homes.arguments_elsewhere);
}

#endif
