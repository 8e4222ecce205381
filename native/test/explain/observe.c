/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* observe [-s] LIBRARIES PROGRAM [WORD...]     runs a program with the libraries preloaded and its threads sampled, and
 * ends as it did. Status 98 if there is no sample at all, or an incomplete one. -s: stops draining after the first
 * sample, and status 98 if the ring was not full at the end. With OBSERVE_NONE there must be no sample. With OBSERVE_FEW
 * there must be a thread without a timer, and samples need not be: timers count for the limit of their user, so other
 * programs may leave one for the main thread alone, which sleeps. With OBSERVE_AHEAD the ring's tail is ahead of its head
 * at first. */
#define _GNU_SOURCE
#include "allocation.h"
#include "ring.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY_SLOTS = 1024, FEW_SLOTS = 8, ENTRIES = 64, FAILED = 98 };

/* Few where nobody drains. */
static uint64_t slots_of_rings = MANY_SLOTS;

/* Samples, or with OBSERVE_LOG the log of allocations, or with OBSERVE_BOTH both. */
static struct ring *ring, *other;

static struct slot *slots_of(struct ring *of)
{
    return (struct slot *)((char *)of + HEADER_BYTES + ENTRIES * sizeof(struct process_entry));
}

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

static struct ring *make_ring(const char *variable, uint64_t magic, uint64_t version)
{
    char value[128];
    size_t bytes = HEADER_BYTES + ENTRIES * sizeof(struct process_entry) + slots_of_rings * sizeof(struct slot);
    int file = memfd_create("observe", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes))
        exit(FAILED);
    struct ring *made = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (made == MAP_FAILED)
        exit(FAILED);
    made->magic = magic;
    made->version = version;
    made->slot_bytes = sizeof(struct slot);
    made->slots = slots_of_rings;
    made->entries = ENTRIES;
    made->token = 0xabc;
    made->filters = own_filters();
    /* As a writer sees it that was interrupted after its look at the head: meanwhile others wrote, and all was taken. */
    made->tail = getenv("OBSERVE_AHEAD") ? 1 : 0;
    snprintf(value, sizeof value, "/proc/%d/fd/%d:abc", (int)getpid(), file);
    setenv(variable, value, 1);
    return made;
}

static bool is_sample(const void *content)
{
    const struct sample *sample = content;
    return sample->ip && sample->time && sample->thread && sample->stack_bytes <= STACK_BYTES;
}

static bool is_allocation(const void *content)
{
    const struct allocation *entry = content;
    bool has_frame = entry->kind >= BLOCK_ALLOCATED;
    return entry->process && entry->thread && entry->time && entry->kind >= PROCESS_BEGAN && entry->kind <= UNMAPPED_NOT &&
           entry->frame_count <= FRAMES && entry->piece_bytes <= PIECE_BYTES &&
           (!has_frame || (entry->frame_count && entry->frames[0] && entry->address));
}

/* Takes what is complete; false if some of it is wrong. */
static bool drain(struct ring *from, long *count)
{
    uint64_t tail = from->tail;
    struct slot *slots = slots_of(from);
    from->beat++;
    for (; tail != from->head && slots[tail % from->slots].sequence == tail + 1; tail++, ++*count) {
        const void *content = &slots[tail % from->slots].sample;
        if (!(from->magic == LOG_MAGIC ? is_allocation(content) : is_sample(content)))
            return false;
    }
    from->tail = tail;
    return true;
}

int main(int count, char **words)
{
    bool stops = count > 1 && strcmp(words[1], "-s") == 0, is_right = true;
    long samples = 0, others = 0;
    int status = 0;
    words += 1 + stops;
    if (count < 3 + stops)
        return FAILED;
    if (stops)
        slots_of_rings = FEW_SLOTS;
    bool both = getenv("OBSERVE_BOTH");
    if (getenv("OBSERVE_LOG") || both)
        ring = make_ring("NUMA_ALLOCATIONS", LOG_MAGIC, LOG_VERSION);
    if (both)
        other = ring;
    if (!ring || both)
        ring = make_ring("NUMA_SAMPLES", RING_MAGIC, RING_VERSION);
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_PRELOAD", words[0], 1);
        execvp(words[1], words + 1);
        _exit(FAILED);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (!stops || samples == 0)
            is_right &= drain(ring, &samples);
        if (other)
            is_right &= drain(other, &others);
        poll(NULL, 0, 2);
    }
    if (!stops)
        is_right &= drain(ring, &samples);
    if (other)
        is_right &= drain(other, &others) && others;
    fprintf(stderr, "%ld samples, %ld in the log, %lu threads, %lu without a timer, %lu lost\n", samples, others,
            (unsigned long)ring->threads, (unsigned long)ring->threads_without_timer, (unsigned long)ring->lost);
    bool few = getenv("OBSERVE_FEW");
    if (!is_right || (getenv("OBSERVE_NONE") ? samples != 0 : samples == 0 && !few))
        return FAILED;
    if (stops && ring->head - ring->tail < ring->slots && !ring->lost)
        return FAILED;
    if (few && !ring->threads_without_timer)
        return FAILED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
