/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library that is loaded and unloaded: it allocates when it begins and ends, and has storage of each thread. */
#include <stdlib.h>
#include <string.h>

static char *from_constructor;
static __thread char storage[48 << 10];
static __thread char *block_of_thread;

__attribute__((constructor)) static void begin(void)
{
    from_constructor = memset(malloc(20000), 1, 20000);
}

__attribute__((destructor)) static void end(void)
{
    from_constructor = realloc(from_constructor, 50000);
    free(from_constructor);
    free(malloc(300000));
}

/* The loader allocates the storage at the first use, in the middle of whatever the thread does. */
int plugin_use(int value)
{
    storage[value] = 1;
    free(block_of_thread);
    block_of_thread = memset(malloc(100 + value), 2, 100 + value);
    return from_constructor[19999] + storage[value] + block_of_thread[0];
}

/* What is given out is freed by others, after the library is gone too. */
void *plugin_block(void)
{
    void *given = block_of_thread;
    block_of_thread = NULL;
    return given;
}
