/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "chain.h"
#include "base/environment.h"
#include "os.h"
#include "ring.h"
#include <stdint.h>
#include <unistd.h>

enum { LINE = 64, LINES = 1 << 20, ROUND = 1 << 12 };

/* The loop between `begin` and `end`: CHAIN_NOPS nops, a load whose address is the result of the load before,
 * CHAIN_NOPS nops, and the jump back. The reader knows its layout. */
#if defined(__x86_64__)
#define LOOP                                                                                                           \
    ".rept 16\n nop\n .endr\n"                                                                                         \
    "mov (%0), %0\n"                                                                                                   \
    ".rept 16\n nop\n .endr\n"                                                                                         \
    "dec %1\n jnz numaexplain_chain\n"
#else
#define LOOP                                                                                                           \
    ".rept 16\n nop\n .endr\n"                                                                                         \
    "ldr %0, [%0]\n"                                                                                                   \
    ".rept 16\n nop\n .endr\n"                                                                                         \
    "subs %1, %1, #1\n b.ne numaexplain_chain\n"
#endif

extern const char begin_of_loop[] __asm__("numaexplain_chain") __attribute__((visibility("hidden")));

static void *follow(void *place, long count)
{
    __asm__ volatile(".p2align 6\n.local numaexplain_chain\nnumaexplain_chain:\n" LOOP
                     : "+r"(place), "+r"(count)
                     :
                     : "cc", "memory");
    return place;
}

/* One cycle through all lines, in the order of a generator with a full period. */
static void connect_lines(char *memory)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < LINES; i++) {
        uint32_t after = (at * 1664525 + 1013904223) % LINES;
        *(void **)(memory + (size_t)at * LINE) = memory + (size_t)after * LINE;
        at = after;
    }
}

void chain_begin(char **environment)
{
    uint64_t limit = environment_number(environment, "NUMA_SAMPLE_CHAIN", 0);
    if (limit == 0)
        return;
    void *memory = os_allocate((size_t)LINE * LINES, 0);
    if (!memory)
        _exit(1);
    connect_lines(memory);
    atomic_store(&ring_process()->chain, (uint64_t)(uintptr_t)begin_of_loop);
    uint64_t end = os_now() + limit * 1000000;
    for (void *place = memory; os_now() < end;)
        place = follow(place, ROUND);
    _exit(0);
}
