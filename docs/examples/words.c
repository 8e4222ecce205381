// Counts lines and words of a text with several threads. Each thread has counts of its own, which another thread may read meanwhile
// to show progress. But the counts of several threads lie on one cache line: with each word, a thread takes the line away from the others.
//
//     gcc -O2 -g -pthread words.c -o words && numa ./words
//     gcc -O2 -g -pthread -DPADDED words.c -o words-padded && numa ./words-padded

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PADDED
#define OWN_LINE __attribute__((aligned(64)))
#else
#define OWN_LINE
#endif

struct counts {
    atomic_long lines, words;
} OWN_LINE;

static struct counts counts[64];
static char *text;
static size_t size, threads;

static void *count(void *argument) {
    size_t thread = (size_t)argument, part = size / threads;
    const char *at = text + thread * part, *end = at + part;
    struct counts *own = &counts[thread];
    for (; at < end; at++) {
        if (*at == '\n')
            own->lines++;
        if (*at == ' ' || *at == '\n')
            own->words++;
    }
    return NULL;
}

int main(int argc, char **argv) {
    threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 2;
    size = argc > 2 ? strtoul(argv[2], NULL, 10) << 20 : 1u << 30;
    if (threads < 1 || threads > 64 || !(text = malloc(size))) {
        fprintf(stderr, "usage: words [THREADS, at most 64] [MiB]\n");
        return 2;
    }
    memset(text, 'a', size);
    for (size_t at = 5; at < size; at += 6)
        text[at] = at % 11 ? ' ' : '\n';
    pthread_t running[64];
    for (size_t thread = 0; thread < threads; thread++)
        pthread_create(&running[thread], NULL, count, (void *)thread);
    for (size_t thread = 0; thread < threads; thread++)
        pthread_join(running[thread], NULL);
    long lines = 0, words = 0;
    for (size_t thread = 0; thread < threads; thread++) {
        lines += counts[thread].lines;
        words += counts[thread].words;
    }
    printf("%ld lines, %ld words\n", lines, words);
    return 0;
}
