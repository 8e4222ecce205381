// Processes that count in a file which they map, this many bytes from each other: neighbours FILE BYTES starts two of them,
// and neighbours FILE BYTES PLACE is one.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 1 << 16, SECONDS = 3 };

__attribute__((noinline)) static void count(volatile long *counter) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 100000; i++) ++*counter;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < SECONDS);
}

static int count_at(const char *path, long place, long bytes) {
    // Each process has the file at another address.
    if (mmap(NULL, SIZE * (place + 1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return 1;
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, SIZE) != 0) return perror(path), 1;
    char *shared = (char *)mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) return perror("mmap"), 1;
    count((volatile long *)(shared + 4096 + place * bytes));
    return 0;
}

int main(int words, char **word) {
    if (words < 3) return fprintf(stderr, "neighbours FILE BYTES [PLACE]\n"), 2;
    long bytes = atol(word[2]);
    if (words > 3) return count_at(word[1], atol(word[3]), bytes);
    for (int place = 0; place < 2; place++)
        if (fork() == 0) _exit(count_at(word[1], place, bytes));
    while (wait(NULL) > 0)
        ;
    return 0;
}
