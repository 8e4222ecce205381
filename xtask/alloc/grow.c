// One block grows by realloc from 4 KiB to 1 GiB, by a quarter each time; every new page is written. Prints `final_kib`.
// A unit is a growth from first to last.

#include "work.h"

#define LAST (1024 * MIB)

int main(int argc, char **argv)
{
    const struct work work = work_of(argc, argv, 1);
    for (long unit = 0; unit < work.units; unit++) {
        size_t size = 4 * KIB;
        char *block = block_of(size, 0);
        touch_pages(block, 0, size);
        while (size < LAST) {
            const size_t more = size + size / 4 < LAST ? size + size / 4 : LAST;
            block = realloc(block, more);
            if (!block || block[0] != 1 || block[size / PAGE / 2 * PAGE] != 1)
                fail("a block was lost");
            // The last page written may have been written in part only.
            touch_pages(block, (size + PAGE - 1) / PAGE * PAGE, more);
            size = more;
        }
        free(block);
    }
    printf("final_kib %zu\n", LAST / KIB);
    return done(work.units);
}
