/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* plugin LIBRARY     loads the library while the program runs: it answers, and can be closed. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>

static void *nothing(void *argument)
{
    return argument;
}

int main(int count, char **words)
{
    CHECK(count == 2);
    void *library = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
    CHECK(library);
    int (*replace)(void) = NULL, (*core)(void) = NULL;
    *(void **)&replace = dlsym(library, "numaplace_rebind");
    *(void **)&core = dlsym(library, "numaplace_core");
    CHECK(replace && core && replace() == 0 && core() >= 0);
    pthread_t id;
    CHECK(pthread_create(&id, NULL, nothing, NULL) == 0 && pthread_join(id, NULL) == 0);
    CHECK(dlclose(library) == 0);
    return 0;
}
