/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "begin.h"
#include "next.h"
#include "os.h"
#include <pthread.h>
#include <unistd.h>

/* Missing in the headers of some C libraries. */
pid_t _Fork(void);
static NEXT_DEFINE(_Fork)

static _Atomic(pid_t) process;
static void (*_Atomic in_child)(void);

void library_begin(char **environment)
{
    enum { NOT_YET, NOW, DONE };
    static atomic_int state;
    int expected = NOT_YET;
    if (atomic_load_explicit(&state, memory_order_acquire) == DONE || !environment)
        return;
    if (atomic_compare_exchange_strong(&state, &expected, NOW)) {
        library_prepare(environment);
        atomic_store_explicit(&state, DONE, memory_order_release);
    }
}

/* Of libnumaplace it runs before the libraries of the program: some of them create threads, or read the mask, when they are
 * loaded. */
__attribute__((constructor)) static void loaded(int count, char **words, char **environment)
{
    (void)count;
    (void)words;
    library_begin(environment ? environment : environ);
}

static void begin_child(void)
{
    atomic_store(&process, os_process());
    atomic_load(&in_child)();
}

void library_follow(void (*begin_in_child)(void))
{
    NEXT_LOOK_UP(_Fork)
    atomic_store(&process, os_process());
    atomic_store(&in_child, begin_in_child);
    pthread_atfork(NULL, NULL, begin_child);
}

bool library_is_of_process(void)
{
    return atomic_load_explicit(&process, memory_order_relaxed) == os_process();
}

/* Does not call handlers of fork. */
PUBLIC pid_t _Fork(void)
{
    NEXT_OR(-1, _Fork);
    pid_t child = next();
    if (child == 0 && atomic_load(&in_child))
        begin_child();
    return child;
}
