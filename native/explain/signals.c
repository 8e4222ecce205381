/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "signals.h"
#include "base/begin.h"
#include "functions.h"
#include "os.h"
#include "ring.h"
#include "sample.h"
#include "timers.h"
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Some of the functions are. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"


typedef void handler_function(int);

/* The program's action for the signal: written by one thread at a time, read by handlers. */
enum { KEPT = 8 };
static struct sigaction actions[KEPT];
static _Atomic unsigned current;
static atomic_flag writing = ATOMIC_FLAG_INIT;

static int number;

static struct sigaction program_action(void)
{
    struct sigaction copy;
    unsigned before;
    do {
        before = atomic_load(&current);
        copy = actions[before % KEPT];
    } while (atomic_load(&current) - before >= KEPT - 1);
    return copy;
}

static void keep_action(const struct sigaction *action)
{
    unsigned at = atomic_load(&current) + 1;
    actions[at % KEPT] = *action;
    atomic_store(&current, at);
}

/* What the program's signal does by default: it ends the process. */
static void end_by_signal(void)
{
    struct sigaction plain;
    sigset_t only;
    memset(&plain, 0, sizeof plain);
    plain.sa_handler = SIG_DFL;
    NEXT(sigaction)(number, &plain, NULL);
    sigemptyset(&only);
    sigaddset(&only, number);
    os_raise(number);
    os_mask_signals(SIG_UNBLOCK, &only, NULL);
}

/* A signal that is not a timer's. */
static void forward(siginfo_t *info, void *context)
{
    struct sigaction action = program_action();
    sigset_t mask = ((ucontext_t *)context)->uc_sigmask, before;
    if (action.sa_handler == SIG_IGN)
        return;
    if (action.sa_handler == SIG_DFL) {
        end_by_signal();
        return;
    }
    if (action.sa_flags & SA_RESETHAND) {
        struct sigaction plain = {.sa_handler = SIG_DFL};
        keep_action(&plain);
    }
    sigorset(&mask, &mask, &action.sa_mask);
    if (!(action.sa_flags & SA_NODEFER))
        sigaddset(&mask, number);
    sigemptyset(&before);
    os_mask_signals(SIG_SETMASK, &mask, &before);
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
    os_mask_signals(SIG_SETMASK, &before, NULL);
}

/* Whether it comes from a timer of this library, which may have ended since. */
static struct thread *record_of(const siginfo_t *info)
{
    return info->si_code == SI_TIMER ? record_at(&threads, info->si_value.sival_ptr) : NULL;
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    struct thread *record = record_of(info);
    if (!record) {
        forward(info, context);
        return;
    }
    sample_restart_call(context);
    if (!record->has_timer)
        return;
    uint64_t now = os_now();
    if (!ring_is_drained(now)) {
        timers_stop_all(OBSERVER_GONE);
        return;
    }
    sample_take(record, now, info, context);
}

/* Calls that the program's signal interrupts are restarted or not, as it wants. */
static int install(int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_signal;
    /* Nothing interrupts the handler. */
    sigfillset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
    return NEXT(sigaction)(number, &action, NULL);
}

int signals_begin(void)
{
    struct sigaction before;
    /* The lowest: the Go runtime takes all others, without asking the C library. */
    number = SIGRTMIN;
    if (!NEXT(sigaction) || NEXT(sigaction)(number, NULL, &before))
        return 0;
    keep_action(&before);
    if (install(SA_RESTART)) {
        number = 0;
        return 0;
    }
    return number;
}

/* Whether a call is about the timers' signal. A child by vfork has the memory of its parent, but actions of its own and
 * no timers. */
static bool is_ours(int which)
{
    library_begin(environ);
    return number && which == number && library_is_of_process();
}

static int exchange_action(const struct sigaction *fresh, struct sigaction *before)
{
    struct sigaction wanted, old;
    sigset_t all, mask;
    if (fresh)
        wanted = *fresh;
    sigfillset(&all);
    sigemptyset(&mask);
    os_mask_signals(SIG_BLOCK, &all, &mask);
    while (atomic_flag_test_and_set(&writing))
        continue;
    old = program_action();
    if (fresh) {
        bool is_handler = wanted.sa_handler != SIG_DFL && wanted.sa_handler != SIG_IGN;
        keep_action(&wanted);
        install(is_handler ? wanted.sa_flags & SA_RESTART : SA_RESTART);
    }
    atomic_flag_clear(&writing);
    os_mask_signals(SIG_SETMASK, &mask, NULL);
    if (before)
        *before = old;
    return 0;
}

PUBLIC int sigaction(int which, const struct sigaction *fresh, struct sigaction *before)
{
    if (is_ours(which))
        return exchange_action(fresh, before);
    return NEXT(sigaction)(which, fresh, before);
}

/* As signal() and its relatives do. */
static handler_function *simple_action(handler_function *handler, int flags)
{
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    action.sa_handler = handler;
    action.sa_flags = flags;
    if (!(flags & SA_NODEFER))
        sigaddset(&action.sa_mask, number);
    exchange_action(&action, &before);
    return before.sa_handler;
}

#define SIMPLE(name, flags)                                                                                            \
    PUBLIC handler_function *name(int which, handler_function *handler)                                               \
    {                                                                                                                  \
        handler_function *(*function)(int, handler_function *);                                                        \
        if (is_ours(which))                                                                                           \
            return simple_action(handler, flags);                                                                      \
        function = NEXT(name);                                                                                         \
        if (function)                                                                                                  \
            return function(which, handler);                                                                          \
        errno = ENOSYS;                                                                                                \
        return SIG_ERR;                                                                                                \
    }

/* Missing in the headers of some C libraries. */
handler_function *bsd_signal(int, handler_function *);
handler_function *__sysv_signal(int, handler_function *);
SIMPLE(signal, SA_RESTART)
SIMPLE(bsd_signal, SA_RESTART)
SIMPLE(ssignal, SA_RESTART)
SIMPLE(sysv_signal, (int)(SA_RESETHAND | SA_NODEFER))
SIMPLE(__sysv_signal, (int)(SA_RESETHAND | SA_NODEFER))

/* SIG_HOLD blocks the signal and leaves its action. */
PUBLIC handler_function *sigset(int which, handler_function *handler)
{
    if (!is_ours(which) || handler == SIG_ERR)
        return NEXT(sigset)(which, handler);
    sigset_t one, mask;
    sigemptyset(&one);
    sigaddset(&one, which);
    sigemptyset(&mask);
    struct sigaction before;
    if (handler == SIG_HOLD)
        exchange_action(NULL, &before);
    else
        before.sa_handler = simple_action(handler, 0);
    os_mask_signals(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &one, &mask);
    return sigismember(&mask, which) ? SIG_HOLD : before.sa_handler;
}

PUBLIC int sigignore(int which)
{
    if (!is_ours(which))
        return NEXT(sigignore)(which);
    simple_action(SIG_IGN, 0);
    return 0;
}

PUBLIC int siginterrupt(int which, int interrupts)
{
    if (!is_ours(which))
        return NEXT(siginterrupt)(which, interrupts);
    struct sigaction action = program_action();
    action.sa_flags = interrupts ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
    return exchange_action(&action, NULL);
}

static bool is_waited_for(const sigset_t *set)
{
    return set && is_ours(number) && sigismember(set, number) == 1;
}

static uint64_t nanoseconds_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
}

/* A timer's signal that was blocked and waited for is taken, and the wait goes on. */
PUBLIC int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    __typeof__(&sigtimedwait) function = NEXT(sigtimedwait);
    if (!is_waited_for(set))
        return function(set, info, timeout);
    siginfo_t own;
    uint64_t begin = os_now(), limit = timeout ? nanoseconds_of(timeout) : 0;
    struct timespec left = timeout ? *timeout : (struct timespec){0};
    for (;;) {
        int taken = function(set, &own, timeout ? &left : NULL);
        if (taken != number || !record_of(&own)) {
            if (taken > 0 && info)
                *info = own;
            return taken;
        }
        uint64_t passed = os_now() - begin, rest = passed < limit ? limit - passed : 0;
        left = (struct timespec){(time_t)(rest / 1000000000), (long)(rest % 1000000000)};
    }
}

PUBLIC int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    return is_waited_for(set) ? sigtimedwait(set, info, NULL) : NEXT(sigwaitinfo)(set, info);
}

PUBLIC int sigwait(const sigset_t *set, int *which)
{
    if (!is_waited_for(set))
        return NEXT(sigwait)(set, which);
    int saved = errno, found;
    do
        found = sigtimedwait(set, NULL, NULL);
    while (found < 0 && errno == EINTR);
    int error = found < 0 ? errno : 0;
    errno = saved;
    if (error == 0)
        *which = found;
    return error;
}

/* Reading from it would show the timers' signals: they end. */
PUBLIC int signalfd(int file, const sigset_t *set, int flags)
{
    if (is_waited_for(set))
        timers_stop_all(SIGNAL_HANDED_OVER);
    return NEXT(signalfd)(file, set, flags);
}

/* One of the program's is not told from a timer's. */
PUBLIC int sigpending(sigset_t *set)
{
    int result = NEXT(sigpending)(set);
    if (result == 0 && is_ours(number) && program_action().sa_handler == SIG_DFL)
        sigdelset(set, number);
    return result;
}
