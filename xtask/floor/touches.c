/* The first touch of fresh pages, or of pages that were dropped.
 * Usage: touches CPU MS. Prints medians of ns for a page, for pages of 4 KiB and of 2 MiB. */
#define _GNU_SOURCE
#include "timed.h"
#include <stdint.h>
#include <sys/mman.h>

/* As many pages between two readings of the clock as numa bench has. */
enum { SMALL = 4096, SMALL_PAGES = 2048, HUGE = 2 << 20, HUGE_PAGES = 16, MOST = 100000 };

static double touched(size_t page, size_t pages, int again)
{
    static char *all;
    size_t bytes = page * pages;
    if (!again || !all) {
        all = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all == MAP_FAILED) {
            perror("mmap");
            exit(1);
        }
    }
    char *memory = (char *)(((size_t)all + HUGE - 1) & ~((size_t)HUGE - 1));
    madvise(memory, bytes, page == HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (again)
        madvise(memory, bytes, MADV_DONTNEED);
    double begin = now();
    for (size_t at = 0; at < bytes; at += page)
        ((volatile char *)memory)[at] = 1;
    double ns = (now() - begin) / (double)pages;
    if (!again) {
        munmap(all, bytes + HUGE);
        all = NULL;
    }
    return ns;
}

static void measure(const char *name, size_t page, size_t pages, int again, double ms)
{
    static double times[MOST];
    size_t samples = 0;
    double end = now() + ms * 1e6;
    touched(page, pages, again);
    while ((samples < 5 || now() < end) && samples < MOST)
        times[samples++] = touched(page, pages, again);
    printf("%s %.3f\n", name, median(times, samples));
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    bind_to(argv[1]);
    measure("small-fresh", SMALL, SMALL_PAGES, 0, atof(argv[2]));
    measure("small-dropped", SMALL, SMALL_PAGES, 1, atof(argv[2]));
    measure("huge-fresh", HUGE, HUGE_PAGES, 0, atof(argv[2]));
    return 0;
}
