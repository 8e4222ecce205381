/* faults
 *
 * A thread that reads one byte behind what was allocated: a sanitizer finds it. With OPTIONS it has
 * options of its own for that. */
#include <pthread.h>
#include <stdlib.h>

#ifdef OPTIONS
const char *__asan_default_options(void)
{
    return OPTIONS;
}
#endif

static void *read_behind(void *bytes)
{
    volatile char *byte = bytes;
    volatile int behind = 16;
    return byte[behind] ? bytes : NULL;
}

int main(void)
{
    pthread_t thread;
    char *bytes = calloc(16, 1);
    return pthread_create(&thread, NULL, read_behind, bytes) || pthread_join(thread, NULL);
}
