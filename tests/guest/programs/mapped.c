/* mapped FILE [--hold SECONDS]
 *
 * Maps the whole file, reads every page, and prints what its numa_maps says of the mapping: the pages on
 * each node, as `N0=1024 N2=1024`. With --hold, it waits for this time, with a thread on every CPU, before it
 * prints them once more. */
#define _GNU_SOURCE
#include "arguments.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define USAGE "usage: mapped FILE [--hold SECONDS]"

static void print_nodes(const char *start)
{
    char line[1024];
    FILE *maps = fopen("/proc/self/numa_maps", "r");
    if (!maps)
        fail("cannot open numa_maps: %s", strerror(errno));
    while (fgets(line, sizeof line, maps)) {
        uintptr_t address = 0;
        if (sscanf(line, "%" SCNxPTR, &address) != 1 || address != (uintptr_t)start)
            continue;
        for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n"))
            if (word[0] == 'N' && strchr(word, '='))
                printf("%s ", word);
    }
    fclose(maps);
    printf("\n");
    fflush(stdout);
}

static void *wait_for_end(void *unused)
{
    (void)unused;
    pause();
    return NULL;
}

/* One on every CPU. */
static void start_threads(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    for (long cpu = 0; cpu < cpus; cpu++) {
        pthread_t thread;
        pthread_attr_t attributes;
        cpu_set_t mask;
        CPU_ZERO(&mask);
        CPU_SET(cpu, &mask);
        pthread_attr_init(&attributes);
        if (pthread_attr_setaffinity_np(&attributes, sizeof mask, &mask) ||
            pthread_create(&thread, &attributes, wait_for_end, NULL))
            fail("cannot start a thread on CPU %ld", cpu);
    }
}

int main(int count, char **words)
{
    int hold = 0;
    if (count == 4 && strcmp(words[2], "--hold") == 0) {
        hold = number("SECONDS", words[3], 0, 86400);
        count -= 2;
    }
    if (count != 2)
        bad_arguments(USAGE);
    int file = open(words[1], O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0)
        fail("%s: %s", words[1], strerror(errno));
    const char *start = mmap(NULL, about.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (start == MAP_FAILED)
        fail("cannot map %s: %s", words[1], strerror(errno));
    volatile char sum = 0;
    for (off_t at = 0; at < about.st_size; at += 4096)
        sum += start[at];
    if (hold)
        start_threads();
    print_nodes(start);
    if (hold) {
        sleep(hold);
        print_nodes(start);
    }
    return 0;
}
