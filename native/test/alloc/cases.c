/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cases.h"

char circumstances[128];

#ifdef NUMALLOC_PREFIX
bool has_function(const char *name)
{
    return name[0];
}

bool is_allocator(const char *library)
{
    return library[0];
}
#else
static const void *library_of(const char *name)
{
    Dl_info about;
    void *function = dlsym(RTLD_DEFAULT, name);
    return function && dladdr(function, &about) ? about.dli_fbase : NULL;
}

bool has_function(const char *name)
{
    const void *library = library_of(name);
    return library && library == library_of("malloc");
}

bool is_allocator(const char *library)
{
    Dl_info about;
    void *function = dlsym(RTLD_DEFAULT, "malloc");
    return function && dladdr(function, &about) && strstr(about.dli_fname, library);
}
#endif

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: %s list|CASE\n", arguments[0]);
        return 2;
    }
    bool list = strcmp(arguments[1], "list") == 0;
    for (const struct test *test = CASES; test->name; test++) {
        if (list)
            puts(test->name);
        if (strcmp(arguments[1], test->name) == 0) {
            test->run();
            return 0;
        }
    }
    if (!list)
        fprintf(stderr, "there is no case %s\n", arguments[1]);
    return list ? 0 : 2;
}
