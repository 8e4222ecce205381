/* Kernels like those of NPB, each in a broken and a repaired variant that differ in who touches their
 * arrays first: npb.c has the table of them, npb_fortran.c one for those in Fortran. The threads are
 * those of OpenMP, and are bound by it or by who starts the program. */
#ifndef NPB_H
#define NPB_H

#include "arguments.h"
#include "gate.h"
#include "numakit-mark.h"
#include <stdbool.h>
#include <stdint.h>

struct kernel {
    const char *name;
    void (*prepare)(int is_repaired);
    void (*work)(int repeats);
    /* Whether the result is right. */
    int (*is_right)(void);
    int repeats;
    /* It has markers of its own. */
    bool is_marked;
    /* Its threads are not those of OpenMP. */
    bool has_own_threads;
};

/* Those of a loop before the kernel: an observer finds all of them at the gate. */
static inline void start_threads(void)
{
    int started = 0;
#pragma omp parallel reduction(+ : started)
    started++;
    if (started < 2)
        fail("only %d thread was started", started);
}

/* NAME broken|repaired [REPEATS] */
static inline int run_kernel(const struct kernel *kernels, size_t known, int count, char **words)
{
    const struct kernel *kernel = NULL;
    bool is_repaired = count > 2 && strcmp(words[2], "repaired") == 0;
    for (size_t i = 0; i < known && count > 1; i++)
        if (strcmp(kernels[i].name, words[1]) == 0)
            kernel = &kernels[i];
    if (!kernel || count < 3 || count > 4 || (!is_repaired && strcmp(words[2], "broken")))
        bad_arguments("usage: %s NAME broken|repaired [REPEATS]", program_invocation_short_name);
    int repeats = count > 3 ? (int)number("REPEATS", words[3], 1, 1000000) : kernel->repeats;
    if (!kernel->has_own_threads)
        start_threads();
    kernel->prepare(is_repaired);
    wait_at_gate();
    while (is_uncounted())
        kernel->work(1);
    if (!kernel->is_marked)
        NUMAKIT_MARK_BEGIN();
    kernel->work(repeats);
    if (!kernel->is_marked)
        NUMAKIT_MARK_END();
    if (!kernel->is_right())
        fail("the result of %s is wrong", kernel->name);
    printf("kernel %s\nverified yes\n", kernel->name);
    return 0;
}

#endif
