/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What no other library asks of the kernel: timers, what a thread used, a futex, seccomp filters, memory that may not be
 * there. */
#define _GNU_SOURCE
#include "os.h"
#include "base/call.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/utsname.h>

pid_t os_parent(void)
{
    return (pid_t)CALL(SYS_getppid, 0);
}

bool os_process_is_in_proc(void)
{
    char number[24] = "";
    long length = CALL(SYS_readlinkat, AT_FDCWD, "/proc/self", number, sizeof number - 1);
    return length > 0 && strtoul(number, NULL, 10) == (unsigned long)os_process();
}

uint32_t os_cpu(void)
{
    unsigned cpu = 0;
    return CALL(SYS_getcpu, &cpu, 0, 0) < 0 ? UINT32_MAX : cpu;
}

uint64_t os_limit(int resource)
{
    struct rlimit limit;
    return CALL(SYS_prlimit64, 0, resource, NULL, &limit) < 0 ? UINT64_MAX : limit.rlim_cur;
}

static uint64_t nanoseconds_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

bool os_usage(struct usage *usage)
{
    struct rusage own;
    if (CALL(SYS_getrusage, RUSAGE_THREAD, &own) < 0)
        return false;
    usage->kernel_time = nanoseconds_of(&own.ru_stime);
    usage->cpu_time = nanoseconds_of(&own.ru_utime) + usage->kernel_time;
    usage->faults = (uint64_t)own.ru_minflt + (uint64_t)own.ru_majflt;
    return true;
}

long os_read_own(uint64_t address, void *into, size_t bytes)
{
    enum { PAGE = 4096 };
    struct iovec local = {into, bytes}, remote[2];
    size_t first = PAGE - address % PAGE;
    int count = first < bytes ? 2 : 1;
    /* In two pieces, since the kernel need not copy a part of one. */
    remote[0] = (struct iovec){(void *)(uintptr_t)address, count == 2 ? first : bytes};
    remote[1] = (struct iovec){(void *)(uintptr_t)(address + first), bytes - first};
    return CALL(SYS_process_vm_readv, os_process(), &local, 1, remote, count, 0);
}

void os_populate(void *from, size_t bytes)
{
    enum { POPULATE_WRITE = 23 };
    CALL(SYS_madvise, from, bytes, POPULATE_WRITE);
}

void *os_allocate_sparse(size_t bytes)
{
    enum { WITHOUT_HUGE_PAGES = 15, WITHOUT_DUMP = 16 };
    void *memory = os_allocate(bytes, MAP_NORESERVE);
    if (memory) {
        CALL(SYS_madvise, memory, bytes, WITHOUT_HUGE_PAGES);
        CALL(SYS_madvise, memory, bytes, WITHOUT_DUMP);
    }
    return memory;
}

void *os_heap_end(void)
{
    /* Without a better end the kernel returns the present one. */
    return (void *)(uintptr_t)CALL(SYS_brk, 0);
}

/* x86-64 since Linux 5.9. Where it is unknown, restarts are done: they do no harm. */
bool os_timers_expire_at_return(void)
{
#if defined(__x86_64__)
    struct utsname system;
    if (CALL(SYS_uname, &system) < 0)
        return false;
    char *end;
    unsigned long major = strtoul(system.release, &end, 10), minor = *end ? strtoul(end + 1, NULL, 10) : 0;
    return major > 5 || (major == 5 && minor >= 9);
#else
    return false;
#endif
}

int os_timer_create(clockid_t clock, int number, void *value, pid_t thread, int *timer)
{
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = number;
    event.sigev_value.sival_ptr = value;
    event._sigev_un._tid = thread;
    return (int)-CALL(SYS_timer_create, clock, &event, timer);
}

static struct timespec time_of(uint64_t nanoseconds)
{
    return (struct timespec){(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
}

void os_timer_set(int timer, uint64_t first, uint64_t period)
{
    struct itimerspec times = {.it_interval = time_of(period), .it_value = time_of(first)};
    CALL(SYS_timer_settime, timer, 0, &times, 0);
}

void os_timer_delete(int timer)
{
    CALL(SYS_timer_delete, timer);
}

void os_wake(_Atomic uint32_t *word)
{
    CALL(SYS_futex, word, FUTEX_WAKE, 1);
}

void os_sleep(uint64_t nanoseconds)
{
    struct timespec time = time_of(nanoseconds);
    CALL(SYS_nanosleep, &time, 0);
}

void os_raise(int number)
{
    CALL(SYS_tgkill, os_process(), os_thread(), number);
}
