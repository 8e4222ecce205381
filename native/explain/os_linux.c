/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "os.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>

enum { KERNEL_SET_BYTES = 8 };

/* Like syscall(), but returns the negative error. */
static long call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
#else
#error "no system calls for this architecture"
#endif
}

#define CALL_6(number, a, b, c, d, e, f, ...)                                                                          \
    call(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL(...) CALL_6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

uint64_t os_now(void)
{
    struct timespec now = {0};
    /* The C library's function may be another library's, which shows programs another time. */
    CALL(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

pid_t os_process(void)
{
    return (pid_t)CALL(SYS_getpid, 0);
}

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

pid_t os_thread(void)
{
    return (pid_t)CALL(SYS_gettid, 0);
}

uint32_t os_cpu(void)
{
    unsigned cpu = 0;
    return CALL(SYS_getcpu, &cpu, 0, 0) < 0 ? UINT32_MAX : cpu;
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

void *os_map_shared(const char *path, size_t least, size_t *bytes)
{
    struct stat data;
    long file = CALL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return NULL;
    long memory = -1;
    if (CALL(SYS_fstat, file, &data) == 0 && S_ISREG(data.st_mode) && (size_t)data.st_size >= least) {
        *bytes = (size_t)data.st_size;
        memory = CALL(SYS_mmap, 0, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    CALL(SYS_close, file);
    return memory < 0 && memory > -4096 ? NULL : (void *)memory;
}

void os_populate(void *from, size_t bytes)
{
    enum { POPULATE_WRITE = 23 };
    CALL(SYS_madvise, from, bytes, POPULATE_WRITE);
}

void os_unmap(void *memory, size_t bytes)
{
    CALL(SYS_munmap, memory, bytes);
}

void *os_allocate(size_t bytes)
{
    long memory = CALL(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory < 0 && memory > -4096 ? NULL : (void *)memory;
}

void *os_allocate_sparse(size_t bytes)
{
    enum { WITHOUT_HUGE_PAGES = 15, WITHOUT_DUMP = 16 };
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    long memory = CALL(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory < 0 && memory > -4096)
        return NULL;
    CALL(SYS_madvise, memory, bytes, WITHOUT_HUGE_PAGES);
    CALL(SYS_madvise, memory, bytes, WITHOUT_DUMP);
    return (void *)memory;
}

/* The number behind a name in /proc/self/status. */
static bool field(const char *text, const char *name, uint64_t *value)
{
    const char *line = strstr(text, name);
    if (line)
        *value = strtoull(line + strlen(name), NULL, 10);
    return line;
}

uint64_t os_seccomp_filters(void)
{
    char text[8192];
    uint64_t mode = 0, count = 0;
    long file = CALL(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    long read = CALL(SYS_read, file, text, sizeof text - 1);
    CALL(SYS_close, file);
    text[read > 0 ? read : 0] = 0;
    if (!field(text, "\nSeccomp:", &mode) || mode == 0)
        return 0;
    /* Since Linux 5.9. */
    return field(text, "\nSeccomp_filters:", &count) ? count : 1;
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

void os_mask_signals(int how, const sigset_t *set, sigset_t *old)
{
    CALL(SYS_rt_sigprocmask, how, set, old, KERNEL_SET_BYTES);
}

void os_raise(int number)
{
    CALL(SYS_tgkill, os_process(), os_thread(), number);
}
