/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* observe [-s] LIBRARIES PROGRAM [WORD...]     runs a program with the libraries preloaded and its threads sampled, and
 * ends as it did. Status 98 if there is no sample at all, or an incomplete one. -s: stops draining after the first
 * sample, and status 98 if the ring is not full then. */
#define _GNU_SOURCE
#include "ring.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 1024, ENTRIES = 64, FAILED = 98 };

static struct ring *ring;
static struct slot *slots;

/* Those of a container: the library begins in processes that have no more. */
static unsigned long own_filters(void)
{
    char line[256];
    unsigned long count = 0, mode = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Seccomp_filters: %lu", &count) == 0)
            sscanf(line, "Seccomp: %lu", &mode);
    if (file)
        fclose(file);
    return mode && !count ? 1 : count;
}

static void make_ring(void)
{
    char value[128];
    size_t bytes = HEADER_BYTES + ENTRIES * sizeof(struct process_entry) + SLOTS * sizeof(struct slot);
    int file = memfd_create("observe", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes))
        exit(FAILED);
    ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (ring == MAP_FAILED)
        exit(FAILED);
    ring->magic = RING_MAGIC;
    ring->version = RING_VERSION;
    ring->slot_bytes = sizeof(struct slot);
    ring->slots = SLOTS;
    ring->entries = ENTRIES;
    ring->token = 0xabc;
    ring->filters = own_filters();
    slots = (struct slot *)((char *)ring + HEADER_BYTES + ENTRIES * sizeof(struct process_entry));
    snprintf(value, sizeof value, "/proc/%d/fd/%d:abc", (int)getpid(), file);
    setenv("NUMA_SAMPLES", value, 1);
}

/* Takes complete samples; false if one is wrong. */
static bool drain(long *count)
{
    uint64_t tail = ring->tail;
    ring->beat++;
    for (; tail != ring->head && slots[tail % SLOTS].sequence == tail + 1; tail++, ++*count) {
        const struct sample *sample = &slots[tail % SLOTS].sample;
        if (!sample->ip || !sample->time || !sample->thread || sample->stack_bytes > STACK_BYTES)
            return false;
    }
    ring->tail = tail;
    return true;
}

int main(int count, char **words)
{
    bool stops = count > 1 && strcmp(words[1], "-s") == 0, is_right = true;
    long samples = 0;
    int status = 0;
    words += 1 + stops;
    if (count < 3 + stops)
        return FAILED;
    make_ring();
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_PRELOAD", words[0], 1);
        execvp(words[1], words + 1);
        _exit(FAILED);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (!stops || samples == 0)
            is_right &= drain(&samples);
        poll(NULL, 0, 2);
    }
    if (!stops)
        is_right &= drain(&samples);
    fprintf(stderr, "%ld samples, %lu threads, %lu without a timer, %lu lost\n", samples, (unsigned long)ring->threads,
            (unsigned long)ring->threads_without_timer, (unsigned long)ring->lost);
    if (!is_right || (getenv("OBSERVE_NONE") ? samples != 0 : samples == 0))
        return FAILED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
