/* forked: three children read one shared mapping and one array of the program at random; each has memory of its own too. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT (8u << 20)
#define STEPS 20000000u

uint64_t table[COUNT];

static uint64_t read_at_random(const uint64_t *of, uint64_t seed)
{
    uint64_t sum = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        sum += of[(seed >> 33) % COUNT];
    }
    return sum;
}

int main(void)
{
    size_t size = COUNT * sizeof(uint64_t);
    uint64_t *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 2;
    for (unsigned at = 0; at < COUNT; at++)
        shared[at] = table[at] = at;
    for (int child = 0; child < 3; child++) {
        pid_t id = fork();
        if (id < 0)
            return 2;
        if (id == 0)
            _exit(read_at_random(shared, child + 1) + read_at_random(table, child + 7) == 0);
    }
    while (wait(NULL) > 0)
        ;
    return 0;
}
