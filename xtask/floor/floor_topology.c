// The floor of reading a topology: opens and reads each file once, parses nothing.
//
// Reads paths from standard input, one a line; prints `seconds`, `files` and `bytes`.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static size_t read_file(const char *path)
{
    static char buffer[65536];
    size_t total = 0;
    ssize_t got;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    while ((got = read(fd, buffer, sizeof buffer)) > 0)
        total += got;
    close(fd);
    return total;
}

int main(void)
{
    size_t count = 0, room = 0, bytes = 0, width = 0;
    char **paths = NULL, *line = NULL;
    while (getline(&line, &width, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (count == room) {
            room = room ? room * 2 : 1024;
            paths = realloc(paths, room * sizeof *paths);
            if (!paths)
                return 1;
        }
        paths[count++] = strdup(line);
    }
    const double start = now();
    for (size_t i = 0; i < count; i++)
        bytes += read_file(paths[i]);
    printf("seconds %.6f\nfiles %zu\nbytes %zu\n", now() - start, count, bytes);
    return 0;
}
