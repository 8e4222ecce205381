/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "attributes.h"
#include "base/newer.h"
#include <signal.h>
#include <stdint.h>

/* The C library returns all possible CPUs if no mask was set. */
static bool is_everything(const struct cpus *mask)
{
    for (size_t at = 0; at < MAX_CPUS / WORD; at++)
        if (~mask->words[at])
            return false;
    return true;
}

static bool read_request(const pthread_attr_t *attributes, struct request *request)
{
    void *lowest;
    if (pthread_attr_getaffinity_np(attributes, sizeof request->mask, (cpu_set_t *)&request->mask) ||
        pthread_attr_getstack(attributes, &lowest, &request->stack_bytes))
        return false;
    request->has_mask = !is_everything(&request->mask);
    /* The C library stores the upper end, which is NULL if the caller gave no stack. */
    request->stack = (uintptr_t)lowest + request->stack_bytes ? lowest : NULL;
    return request->stack || pthread_attr_getstacksize(attributes, &request->stack_bytes) == 0;
}

bool request_of(const pthread_attr_t *attributes, struct request *request)
{
    request->attributes = attributes;
    if (attributes)
        return read_request(attributes, request);
    pthread_attr_t defaults;
    if (default_attributes(&defaults))
        return false;
    bool is_read = read_request(&defaults, request);
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
    /* Attributes of older glibc have no signal mask. */
    if (!newer()->get_signals || !newer()->set_signals)
        return 0;
    int known = newer()->get_signals(from, &blocked);
    if (known == NO_SIGNALS)
        return 0;
    return known ? known : newer()->set_signals(to, &blocked);
}

static int copy(pthread_attr_t *to, const struct request *request)
{
    const pthread_attr_t *from = request->attributes;
    size_t guard;
    int state, scope, error;
    if ((error = pthread_attr_getdetachstate(from, &state)) ||
        (error = pthread_attr_setdetachstate(to, state)) ||
        (error = pthread_attr_getguardsize(from, &guard)) ||
        (error = pthread_attr_setguardsize(to, guard)) ||
        (error = pthread_attr_getscope(from, &scope)) || (error = pthread_attr_setscope(to, scope)) ||
        (error = copy_schedule(to, from)) || (error = copy_signals(to, from)))
        return error;
    return request->stack ? pthread_attr_setstack(to, request->stack, request->stack_bytes)
                       : pthread_attr_setstacksize(to, request->stack_bytes);
}

int attributes_copy(pthread_attr_t *fresh, const struct request *request, const struct cpus *mask)
{
    int error = request->attributes ? pthread_attr_init(fresh) : default_attributes(fresh);
    if (error)
        return error;
    if (request->attributes)
        error = copy(fresh, request);
    if (error == 0 && mask)
        error = pthread_attr_setaffinity_np(fresh, sizeof *mask, (const cpu_set_t *)mask);
    if (error)
        pthread_attr_destroy(fresh);
    return error;
}
