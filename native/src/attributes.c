/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "attributes.h"
#include "newer.h"
#include <signal.h>
#include <stdint.h>

/* The C library answers with all CPUs there can be where nothing was set. */
static bool is_everything(const struct cpus *mask)
{
    for (size_t at = 0; at < MAX_CPUS / WORD; at++)
        if (~mask->words[at])
            return false;
    return true;
}

static bool read_wish(const pthread_attr_t *attributes, struct wish *wish)
{
    void *lowest;
    if (pthread_attr_getaffinity_np(attributes, sizeof wish->mask, (cpu_set_t *)&wish->mask) ||
        pthread_attr_getstack(attributes, &lowest, &wish->stack_bytes))
        return false;
    wish->has_mask = !is_everything(&wish->mask);
    /* What is kept is the upper end; it is NULL where the caller gave no stack. */
    wish->stack = (uintptr_t)lowest + wish->stack_bytes ? lowest : NULL;
    return wish->stack || pthread_attr_getstacksize(attributes, &wish->stack_bytes) == 0;
}

bool wish_of(const pthread_attr_t *attributes, struct wish *wish)
{
    wish->attributes = attributes;
    if (attributes)
        return read_wish(attributes, wish);
    pthread_attr_t defaults;
    if (pthread_getattr_default_np(&defaults))
        return false;
    bool is_read = read_wish(&defaults, wish);
    pthread_attr_destroy(&defaults);
    return is_read;
}

static int copy_schedule(pthread_attr_t *to, const pthread_attr_t *from)
{
    struct sched_param parameters;
    int inherit, policy;
    int error = pthread_attr_getinheritsched(from, &inherit);
    if (error || inherit == PTHREAD_INHERIT_SCHED)
        return error;
    if ((error = pthread_attr_getschedpolicy(from, &policy)) ||
        (error = pthread_attr_getschedparam(from, &parameters)) ||
        (error = pthread_attr_setinheritsched(to, inherit)) ||
        (error = pthread_attr_setschedpolicy(to, policy)))
        return error;
    return pthread_attr_setschedparam(to, &parameters);
}

static int copy_signals(pthread_attr_t *to, const pthread_attr_t *from)
{
    enum { NO_SIGNALS = -1 };
    sigset_t blocked;
    /* Attributes of older glibc have no signals. */
    if (!newer()->get_signals || !newer()->set_signals)
        return 0;
    int known = newer()->get_signals(from, &blocked);
    if (known == NO_SIGNALS)
        return 0;
    return known ? known : newer()->set_signals(to, &blocked);
}

static int copy(pthread_attr_t *to, const struct wish *wish)
{
    const pthread_attr_t *from = wish->attributes;
    size_t guard;
    int state, scope, error;
    if ((error = pthread_attr_getdetachstate(from, &state)) ||
        (error = pthread_attr_setdetachstate(to, state)) ||
        (error = pthread_attr_getguardsize(from, &guard)) ||
        (error = pthread_attr_setguardsize(to, guard)) ||
        (error = pthread_attr_getscope(from, &scope)) || (error = pthread_attr_setscope(to, scope)) ||
        (error = copy_schedule(to, from)) || (error = copy_signals(to, from)))
        return error;
    return wish->stack ? pthread_attr_setstack(to, wish->stack, wish->stack_bytes)
                       : pthread_attr_setstacksize(to, wish->stack_bytes);
}

int attributes_make(pthread_attr_t *fresh, const struct wish *wish, const struct cpus *mask)
{
    int error = wish->attributes ? pthread_attr_init(fresh) : pthread_getattr_default_np(fresh);
    if (error)
        return error;
    if (wish->attributes)
        error = copy(fresh, wish);
    if (error == 0 && mask)
        error = pthread_attr_setaffinity_np(fresh, sizeof *mask, (const cpu_set_t *)mask);
    if (error)
        pthread_attr_destroy(fresh);
    return error;
}
