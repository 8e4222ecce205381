/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The libgomps of the process. The program's calls end up here whichever of them it was linked with, so the one behind a call
 * is that of the calling module. There may be several, and one may be loaded later. */
#ifndef SCHED_RUNTIMES_H
#define SCHED_RUNTIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The functions behind this library's own, and those that it asks. */
#define FUNCTIONS(DO)                                                                                                  \
    DO(GOMP_parallel) DO(GOMP_parallel_start) DO(GOMP_parallel_end) DO(GOMP_parallel_reductions)                       \
    DO(GOMP_parallel_loop_dynamic_start) DO(GOMP_parallel_loop_guided_start) DO(GOMP_parallel_loop_runtime_start)      \
    DO(GOMP_parallel_loop_nonmonotonic_dynamic) DO(GOMP_parallel_loop_nonmonotonic_guided)                             \
    DO(GOMP_parallel_loop_nonmonotonic_runtime) DO(GOMP_parallel_loop_maybe_nonmonotonic_runtime)                      \
    DO(GOMP_loop_dynamic_start) DO(GOMP_loop_guided_start) DO(GOMP_loop_runtime_start)                                 \
    DO(GOMP_loop_nonmonotonic_dynamic_start) DO(GOMP_loop_nonmonotonic_guided_start)                                   \
    DO(GOMP_loop_nonmonotonic_runtime_start) DO(GOMP_loop_maybe_nonmonotonic_runtime_start)                            \
    DO(GOMP_loop_dynamic_next) DO(GOMP_loop_guided_next) DO(GOMP_loop_runtime_next)                                    \
    DO(GOMP_loop_nonmonotonic_dynamic_next) DO(GOMP_loop_nonmonotonic_guided_next)                                     \
    DO(GOMP_loop_nonmonotonic_runtime_next) DO(GOMP_loop_maybe_nonmonotonic_runtime_next)                              \
    DO(GOMP_loop_ull_dynamic_start) DO(GOMP_loop_ull_guided_start) DO(GOMP_loop_ull_runtime_start)                     \
    DO(GOMP_loop_ull_nonmonotonic_dynamic_start) DO(GOMP_loop_ull_nonmonotonic_guided_start)                           \
    DO(GOMP_loop_ull_nonmonotonic_runtime_start) DO(GOMP_loop_ull_maybe_nonmonotonic_runtime_start)                    \
    DO(GOMP_loop_ull_dynamic_next) DO(GOMP_loop_ull_guided_next) DO(GOMP_loop_ull_runtime_next)                        \
    DO(GOMP_loop_ull_nonmonotonic_dynamic_next) DO(GOMP_loop_ull_nonmonotonic_guided_next)                             \
    DO(GOMP_loop_ull_nonmonotonic_runtime_next) DO(GOMP_loop_ull_maybe_nonmonotonic_runtime_next)                      \
    DO(GOMP_loop_end) DO(GOMP_loop_end_nowait) DO(GOMP_loop_end_cancel) DO(GOMP_barrier) DO(GOMP_barrier_cancel)       \
    DO(omp_get_level) DO(omp_get_thread_num) DO(omp_get_num_threads) DO(omp_get_max_threads) DO(omp_get_schedule)

#define NUMBER_OF(name) F_##name,
enum function { FUNCTIONS(NUMBER_OF) FUNCTIONS_COUNT };

typedef void any_function(void);

struct runtime {
    uintptr_t base;                /* where it is loaded */
    any_function *functions[FUNCTIONS_COUNT]; /* NULL: it lacks the function */
};

/* A module with code, and its libgomp. */
struct module {
    uintptr_t from, size;
    const struct runtime *runtime;
    unsigned generation;
};

/* The module in which an address is. Ends the process, as the loader would, if there is no libgomp for it. */
const struct module *module_of(uintptr_t address);

/* In a forked child, which has only the calling thread. */
void runtimes_begin_child(void);

/* A libgomp's function. Ends the process, as the loader would, if it lacks it. */
any_function *runtime_function(const struct runtime *runtime, enum function function);

static inline bool module_has(const struct module *module, uintptr_t address)
{
    return address - module->from < module->size;
}

#endif
