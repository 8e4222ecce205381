/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* threads list | threads CASE     runs one case, in an environment of two CPUs
 *
 * NUMAPLACE_UNDER_TEST is the library to be preloaded; without it, this program is linked with it. */
#define _GNU_SOURCE
#include "check.h"
#include <unistd.h>

int first_cpu = -1, second_cpu = -1;

static const struct test *find(const struct test *tests, const char *name)
{
    for (; tests->name; tests++)
        if (strcmp(tests->name, name) == 0)
            return tests;
    return NULL;
}

static void list(const struct test *tests)
{
    for (; tests->name; tests++)
        puts(tests->name);
}

static void find_cpus(void)
{
    cpu_set_t allowed;
    CHECK(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && second_cpu < 0; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            *(first_cpu < 0 ? &first_cpu : &second_cpu) = cpu;
    if (second_cpu < 0) {
        printf("skipped in part (machine): placing threads: one CPU is allowed here, two are needed\n");
        exit(77);
    }
}

/* Starts this program again, as `numa run` would. */
static void become(const struct test *test, char **words)
{
    char text[64];
    cpu_set_t both;
    CPU_ZERO(&both);
    CPU_SET(first_cpu, &both);
    CPU_SET(second_cpu, &both);
    CHECK(sched_setaffinity(0, sizeof both, &both) == 0);
    /* Not the order of the numbers: the plan's order is what counts. */
    snprintf(text, sizeof text, "%d,%d", second_cpu, first_cpu);
    setenv("NUMAPLACE_CPUS", text, 1);
    setenv("NUMA_PLACE", text, 1);
    setenv("NUMA_MASK", text, 1);
    snprintf(text, sizeof text, "0:%d,%d", first_cpu, second_cpu);
    setenv("NUMA_NODES", text, 1);
    for (const char *const *entry = test->environment; *entry; entry++)
        putenv((char *)*entry);
    const char *places = getenv("OMP_PLACES");
    if (places && strcmp(places, "as planned") == 0) {
        snprintf(text, sizeof text, "{%d},{%d}", second_cpu, first_cpu);
        setenv("OMP_PLACES", text, 1);
    }
    const char *preload = getenv("NUMAPLACE_UNDER_TEST");
    if (preload)
        setenv("LD_PRELOAD", preload, 1);
    setenv("NUMAPLACE_CASE", test->name, 1);
    execv("/proc/self/exe", words);
    CHECK(!"cannot start this program again");
}

int main(int count, char **words)
{
    CHECK(count == 2);
    if (strcmp(words[1], "list") == 0) {
        list(PLACING);
        list(AROUND);
        list(CHILDREN);
        list(RANKS);
        list(PHASES);
        return 0;
    }
    /* What a case spawns to see what children get. */
    if (strcmp(words[1], "count") == 0) {
        cpu_set_t mask = mask_of(pthread_self());
        return CPU_COUNT(&mask);
    }
    const struct test *test = find(PLACING, words[1]);
    test = test ? test : find(AROUND, words[1]);
    test = test ? test : find(CHILDREN, words[1]);
    test = test ? test : find(RANKS, words[1]);
    test = test ? test : find(PHASES, words[1]);
    CHECK(test);
    if (!getenv("NUMAPLACE_CASE")) {
        find_cpus();
        become(test, words);
    }
    const char *cpus = getenv("NUMAPLACE_CPUS");
    CHECK(cpus && sscanf(cpus, "%d,%d", &first_cpu, &second_cpu) == 2);
    test->run();
    return 0;
}
