/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "stack.h"
#include "cure.h"
#include "os.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include "base/newer.h"
#include <dlfcn.h>

/* Of the thread's own stack; `high` is 1 where they cannot be known. */
static __thread struct {
    uintptr_t low, high;
} own __attribute__((tls_model("initial-exec")));

/* As the first stack can always have: what may be mapped below a larger one is not known. */
enum { FIRST_BYTES = 1 << 20 };

static int (*get_attributes)(pthread_t, pthread_attr_t *);
static int (*get_stack)(const pthread_attr_t *, void **, size_t *);
static int (*destroy)(pthread_attr_t *);

static void look_up(const char *name, void *function)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &symbol, sizeof symbol);
}

void stack_begin(void)
{
    look_up("pthread_getattr_np", &get_attributes);
    look_up("pthread_attr_getstack", &get_stack);
    look_up("pthread_attr_destroy", &destroy);
}

/* The name of the program is at the end of the first thread's stack. */
static void find_first(void)
{
    own.high = getauxval(AT_EXECFN);
    own.low = own.high - FIRST_BYTES;
}

/* Allocates: nothing is looked for meanwhile. */
static void find_other(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    own.high = 1;
    if (!get_attributes || !get_stack || !destroy || get_attributes(pthread_self(), &attributes))
        return;
    if (get_stack(&attributes, &low, &bytes) == 0) {
        own.low = (uintptr_t)low;
        own.high = own.low + bytes;
    }
    destroy(&attributes);
}

const uintptr_t *stack_end(const uintptr_t *from, size_t most)
{
    uintptr_t at = (uintptr_t)from, end;
    if (RARELY(own.high == 0) && !is_filtered()) {
        int before = errno;
        if (os_thread() == os_process())
            find_first();
        else
            find_other();
        errno = before;
    }
    if (at >= own.low && at < own.high)
        end = own.high;
    else
        end = (at / cure.page_bytes + 1) * cure.page_bytes;
    size_t words = (end - at) / sizeof *from;
    return from + (words < most ? words : most);
}
