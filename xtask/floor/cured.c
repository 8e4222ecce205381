/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* cured KIND COUNT [LIBRARY]     allocates and frees a block so often, and prints the CPU time of a pair; or for `contended` two threads
 * count so often in blocks of their own, whose neighbours share a cache line: the CPU time of both for one step. With a library, which is then
 * preloaded, under a cure of one object: for `other` a large one, else that of the block: `near`, `padded` and `contended` are small, `large` is known
 * by its direct caller, `chain` by two. */
#define _GNU_SOURCE
#include "../../native/apply/table.h"
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { COUNTER_BYTES = 16, SMALL_BYTES = 64, LARGE_BYTES = 1 << 20, TOKEN = 1 };

typedef void *allocate(size_t);

/* What the compiler cannot leave out. */
static void *volatile kept;
static allocate *volatile function = malloc;
static uintptr_t codes[2];

/* In place of malloc: where it is called from. */
static void *note(size_t size)
{
    (void)size;
    codes[0] = (uintptr_t)__builtin_return_address(0);
    return NULL;
}

static __attribute__((noinline)) void *wrapper(size_t size)
{
    void *block = function(size);
    if (function == note)
        codes[1] = (uintptr_t)__builtin_return_address(0);
    return block;
}

static __attribute__((noinline)) void pairs(size_t size, long count)
{
    for (long i = 0; i < count; i++) {
        kept = wrapper(size);
        free(kept);
    }
}

static long steps;

static void *count_steps(void *counter)
{
    for (long i = 0; i < steps; i++)
        atomic_fetch_add_explicit((atomic_long *)counter, 1, memory_order_relaxed);
    return NULL;
}

/* The blocks are on one line, unless the cure has them on lines of their own. */
static void contend(size_t size, long count)
{
    enum { LINE = 64, TRIES = 8 };
    pthread_t threads[2];
    char *one = wrapper(size), *other = wrapper(size);
    for (int i = 0; i < TRIES && (uintptr_t)one / LINE != (uintptr_t)other / LINE; i++) {
        one = other;
        other = wrapper(size);
    }
    steps = count;
    if (pthread_create(&threads[0], NULL, count_steps, one) || pthread_create(&threads[1], NULL, count_steps, other))
        exit(2);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static double nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* Of the program, which is the first. Returns what the loader adds to its addresses. */
static int take_id(struct dl_phdr_info *own, size_t bytes, void *data)
{
    struct apply_module *module = data;
    (void)bytes;
    module->reserved = own->dlpi_addr;
    for (int i = 0; i < own->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &own->dlpi_phdr[i];
        const char *from = (const char *)(own->dlpi_addr + part->p_vaddr), *end = from + part->p_memsz;
        while (part->p_type == PT_NOTE && from < end) {
            const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)from;
            const char *content = from + sizeof *head + (head->n_namesz + 3) / 4 * 4;
            if (head->n_type == NT_GNU_BUILD_ID && head->n_descsz <= sizeof module->build_id) {
                memcpy(module->build_id, content, head->n_descsz);
                module->build_id_bytes = head->n_descsz;
            }
            from = content + (head->n_descsz + 3) / 4 * 4;
        }
    }
    return 1;
}

static size_t size_of(const char *kind)
{
    if (strcmp(kind, "contended") == 0)
        return COUNTER_BYTES;
    return strcmp(kind, "large") == 0 || strcmp(kind, "chain") == 0 ? LARGE_BYTES : SMALL_BYTES;
}

static void fill(struct apply_table *table, const char *kind)
{
    struct apply_object *object = &table->object[0];
    struct apply_header *header = &table->header;
    header->magic = APPLY_MAGIC;
    header->version = APPLY_VERSION;
    header->token = TOKEN;
    header->object_count = header->module_count = header->node_count = 1;
    table->node[0] = (struct apply_node){(uint32_t)sched_getcpu(), 1};
    dl_iterate_phdr(take_id, &table->module[0]);
    function = note;
    pairs(1, 1);
    object->kind = OF_BLOCKS;
    bool is_padded = strcmp(kind, "padded") == 0 || strcmp(kind, "contended") == 0;
    object->policy = strcmp(kind, "near") == 0 ? AS_NEAR : is_padded ? AS_PADDED : AS_PARTS;
    object->smallest = object->largest = strcmp(kind, "other") == 0 ? LARGE_BYTES : size_of(kind);
    object->chain_count = strcmp(kind, "chain") == 0 ? 2 : 1;
    for (uint64_t i = 0; i < object->chain_count; i++)
        object->chain[i] = codes[i] - table->module[0].reserved;
}

/* Runs this program again with the library. */
static void run_under(const char *library, char **words)
{
    char name[64];
    int file = memfd_create("cure", 0);
    if (file < 0 || ftruncate(file, sizeof(struct apply_table)))
        exit(2);
    struct apply_table *table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (table == MAP_FAILED)
        exit(2);
    fill(table, words[1]);
    snprintf(name, sizeof name, "/proc/%d/fd/%d:%x", (int)getpid(), file, TOKEN);
    setenv("NUMA_APPLY", name, 1);
    setenv("LD_PRELOAD", library, 1);
    words[3] = NULL;
    execv("/proc/self/exe", words);
    exit(2);
}

int main(int count, char **words)
{
    if (count != 3 && count != 4)
        return 2;
    if (count == 4)
        run_under(words[3], words);
    size_t size = size_of(words[1]);
    long number = strtol(words[2], NULL, 10);
    void (*run)(size_t, long) = strcmp(words[1], "contended") == 0 ? contend : pairs;
    run(size, number / 10 + 1);
    double begin = nanoseconds();
    run(size, number);
    printf("ns_of_a_pair %.3f\n", (nanoseconds() - begin) / (double)number);
    return 0;
}
