/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* loader MODULE [OTHER]: a program without OpenMP that loads modules whose libgomp comes with them; with OTHER, one that uses
 * another libgomp, inside of the first one's loop too, where its loops are outside of any region of its own. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 2000 };
typedef int run(unsigned char *seen, int count, void (*inside)(void));
static unsigned char seen[COUNT], others[COUNT];
static run *other;
static long wrong, ran_inside;

static void check(const char *what, const unsigned char *times, int wanted)
{
    for (int i = 0; i < COUNT; i++)
        if (times[i] != (unsigned char)wanted && wrong++ < 5)
            printf("%s: %d was run %d times instead of %d\n", what, i, times[i], wanted);
}

static void inside(void)
{
    other(others, COUNT, NULL);
    __atomic_fetch_add(&ran_inside, 1, __ATOMIC_RELAXED);
}

static run *run_of(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    run *found = handle ? (run *)dlsym(handle, "plugin_run") : NULL;
    if (!found)
        printf("%s\n", dlerror());
    return found;
}

int main(int words, char **word)
{
    run *first = words > 1 ? run_of(word[1]) : NULL;
    other = words > 2 ? run_of(word[2]) : NULL;
    if (!first || (words > 2 && !other))
        return 1;
    for (int round = 0; round < 20; round++) {
        memset(seen, 0, sizeof seen);
        wrong += first(seen, COUNT, NULL) != COUNT;
        check("module", seen, 1);
        if (words > 2) {
            memset(others, 0, sizeof others);
            wrong += other(others, COUNT, NULL) != COUNT;
            check("other module", others, 1);
            memset(others, 0, sizeof others);
            ran_inside = 0;
            wrong += first(seen, COUNT, inside) != COUNT;
            check("module again", seen, 2);
            check("other module inside", others, (int)ran_inside);
        }
    }
    printf("%ld failures\n", wrong);
    return wrong != 0;
}
