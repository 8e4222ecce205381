/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The system calls that only this library makes. None changes errno or uses thread-local storage either, so that a handler
 * may call them whatever it interrupted. */
#ifndef EXPLAIN_OS_H
#define EXPLAIN_OS_H

#include "base/os.h"
#include <stdatomic.h>
#include <stdbool.h>

static inline uint64_t os_now(void)
{
    return os_time(CLOCK_MONOTONIC);
}

pid_t os_parent(void);
/* Whether the numbers of processes here are those of /proc. */
bool os_process_is_in_proc(void);
/* A call each time: the C library's function is faster by thread-local storage. */
uint32_t os_cpu(void);
/* The soft limit of a resource; UINT64_MAX is none. */
uint64_t os_limit(int resource);

/* What a thread used since it began: CPU time and the kernel's part of it, in ns, and page faults. */
struct usage {
    uint64_t cpu_time, kernel_time, faults;
};

/* Of the calling thread. */
bool os_usage(struct usage *usage);

/* Copies memory of this process that may not be there; the bytes that could be copied, or a negative error. */
long os_read_own(uint64_t address, void *into, size_t bytes);

/* Maps the pages of a part of a mapping now, where the kernel can: since Linux 5.14. */
void os_populate(void *from, size_t bytes);
/* Memory of which little will be used, here and there. */
void *os_allocate_sparse(size_t bytes);
/* Where the heap that grows with brk ends. */
void *os_heap_end(void);

/* Whether the kernel sends signals of CPU timers only when the thread returns to its program. */
bool os_timers_expire_at_return(void);

/* A timer that sends the signal with the value to this thread. Returns 0 or an error. */
int os_timer_create(clockid_t clock, int number, void *value, pid_t thread, int *timer);
void os_timer_set(int timer, uint64_t first, uint64_t period);
void os_timer_delete(int timer);

void os_wake(_Atomic uint32_t *word);
void os_sleep(uint64_t nanoseconds);
void os_raise(int number);

#endif
