/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that glibc has only after 2.17: looked up at run time, NULL if its C library lacks them. */
#ifndef NEWER_H
#define NEWER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Since 2.35. As in <dlfcn.h>, which older headers lack. */
struct found_object {
    unsigned long long flags;
    void *from, *to;
    struct link_map *library;
    void *unwinding;
    unsigned long long reserved[10];
};

struct newer {
    /* Since 2.18. */
    int (*get_defaults)(pthread_attr_t *);
    /* Since 2.32. */
    int (*get_signals)(const pthread_attr_t *, sigset_t *);
    int (*set_signals)(pthread_attr_t *, const sigset_t *);
    int (*find_object)(void *, struct found_object *);
};

/* Whether the program has the functions for threads: before glibc 2.34 it may be linked without them. */
bool threads_are_there(void);

/* The attributes of threads that are created without any; pthread_attr_destroy ends them. Needs
 * newer_begin. */
int default_attributes(pthread_attr_t *attributes);

/* Called while no other thread can be in the loader. */
void newer_begin(void);
const struct newer *newer(void);

#endif
