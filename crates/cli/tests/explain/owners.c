/* owners: functions that take turns, each of which reads one object that no other one reads: a block, one that is at the
 * place of a block that was freed, a mapping, a file, a variable, thread-local storage and the stack of a thread. A
 * function is called as its object is. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { WORDS = 1 << 23, BYTES = WORDS * 8 };

static uint64_t variable[WORDS];
static _Thread_local uint64_t local[WORDS];
static volatile uint64_t sink;

/* Each round begins elsewhere: rounds as long as the time between two samples would show the same lines only. Functions of
 * the same code would be one. */
#define READ(name, number)                                                       \
    __attribute__((noinline)) static void read_##name(const uint64_t *words)     \
    {                                                                            \
        uint64_t sum = 0;                                                        \
        for (size_t round = 0; round < 25; round++)                              \
            for (size_t i = 0; i < WORDS; i += 8)                                \
                sum += words[(round * 2654435761 + i) % WORDS] ^ (number);       \
        sink = sum;                                                              \
    }

READ(block, 1)
READ(reused, 2)
READ(mapping, 3)
READ(file, 4)
READ(variable, 5)
READ(local, 6)
READ(stack, 7)

static void *filled(void *memory)
{
    return memset(memory, 1, BYTES);
}

__attribute__((noinline)) static uint64_t *block(void)
{
    return filled(malloc(BYTES + 1));
}

__attribute__((noinline)) static uint64_t *reused(void)
{
    return filled(malloc(BYTES + 2));
}

static void *of_thread(void *file)
{
    uint64_t stack[WORDS];
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    for (int turn = 0; turn < 6; turn++) {
        uint64_t *memory = block();
        read_block(memory);
        free(memory);
        memory = reused();
        read_reused(memory);
        free(memory);
        memory = filled(mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, -1, 0));
        read_mapping(memory);
        munmap(memory, BYTES);
        read_file(file);
        read_variable(filled(variable));
        read_local(filled(local));
        read_stack(filled(stack));
    }
    return NULL;
}

int main(int count, char **words)
{
    FILE *file = count > 1 ? fopen(words[1], "w+") : NULL;
    if (!file || fseek(file, BYTES - 1, SEEK_SET) || fputc(1, file) == EOF || fflush(file))
        return 2;
    void *mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 4 * (size_t)BYTES);
    if (mapped == MAP_FAILED || pthread_create(&thread, &attributes, of_thread, filled(mapped)))
        return 2;
    return pthread_join(thread, NULL);
}
