/* chains: touches and uses two blocks by known functions, without frame pointers; prints its resident memory in kB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 192 << 20, SMALL = 64 << 20 };

static volatile unsigned long sink;

__attribute__((noipa)) static void fill(char *block, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 4096)
        block[at] = 1;
}

__attribute__((noipa)) static char *make_large(void)
{
    char *block = malloc(LARGE);
    fill(block, LARGE);
    return block;
}

__attribute__((noipa)) static char *make_small(void)
{
    char *block = malloc(SMALL);
    memset(block, 1, SMALL);
    return block;
}

__attribute__((noipa)) static unsigned long gather(const char *block, size_t bytes, long rounds)
{
    unsigned long number = 1, sum = 0;
    for (long i = 0; i < rounds; i++) {
        number = number * 6364136223846793005ul + 1442695040888963407ul;
        sum += block[(number >> 30) & (bytes - 1)];
        number += sum & 1;
    }
    return sum;
}

__attribute__((noipa)) static void use_large(const char *block)
{
    for (int i = 0; i < 3; i++)
        sink += gather(block, LARGE / 3 * 2, 2500000);
}

__attribute__((noipa)) static void use_small(const char *block)
{
    for (int i = 0; i < 3; i++)
        sink += gather(block, SMALL, 2500000);
}

int main(void)
{
    char *large = make_large(), *small = make_small(), line[256];
    use_large(large);
    use_small(small);
    FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
    while (rollup && fgets(line, sizeof line, rollup))
        if (!strncmp(line, "Rss:", 4))
            printf("%ld\n", atol(line + 4));
    return 0;
}
