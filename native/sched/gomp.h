/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libgomp's functions that compilers call, as its ABI has them since the version in which each came. */
#ifndef SCHED_GOMP_H
#define SCHED_GOMP_H

#include <stdbool.h>

typedef unsigned long long ull;
typedef void body(void *);

void GOMP_parallel(body *function, void *data, unsigned threads, unsigned flags);
void GOMP_parallel_start(body *function, void *data, unsigned threads);
void GOMP_parallel_end(void);
unsigned GOMP_parallel_reductions(body *function, void *data, unsigned threads, unsigned flags);

typedef void parallel_loop(body *, void *, unsigned, long, long, long, long, unsigned);
typedef void parallel_runtime_loop(body *, void *, unsigned, long, long, long, unsigned);
typedef void old_parallel_loop(body *, void *, unsigned, long, long, long, long);
typedef void old_parallel_runtime_loop(body *, void *, unsigned, long, long, long);
parallel_loop GOMP_parallel_loop_nonmonotonic_dynamic, GOMP_parallel_loop_nonmonotonic_guided;
parallel_runtime_loop GOMP_parallel_loop_nonmonotonic_runtime, GOMP_parallel_loop_maybe_nonmonotonic_runtime;
old_parallel_loop GOMP_parallel_loop_dynamic_start, GOMP_parallel_loop_guided_start;
old_parallel_runtime_loop GOMP_parallel_loop_runtime_start;

typedef bool start_long(long, long, long, long, long *, long *);
typedef bool start_runtime_long(long, long, long, long *, long *);
typedef bool next_long(long *, long *);
typedef bool start_ull(bool, ull, ull, ull, ull, ull *, ull *);
typedef bool start_runtime_ull(bool, ull, ull, ull, ull *, ull *);
typedef bool next_ull(ull *, ull *);

/* Schedules by how their functions are called: DO(name). Monotonic ones are those without an adjective, of callers that know
 * the difference. */
#define CHUNKED(DO) DO(dynamic) DO(guided) DO(nonmonotonic_dynamic) DO(nonmonotonic_guided)
#define OF_RUNTIME(DO) DO(runtime) DO(nonmonotonic_runtime) DO(maybe_nonmonotonic_runtime)

#define DECLARE_CHUNKED(name)                                                                                          \
    start_long GOMP_loop_##name##_start;                                                                               \
    start_ull GOMP_loop_ull_##name##_start;
#define DECLARE_OF_RUNTIME(name)                                                                                       \
    start_runtime_long GOMP_loop_##name##_start;                                                                       \
    start_runtime_ull GOMP_loop_ull_##name##_start;
#define DECLARE_NEXT(name)                                                                                             \
    next_long GOMP_loop_##name##_next;                                                                                 \
    next_ull GOMP_loop_ull_##name##_next;
CHUNKED(DECLARE_CHUNKED)
OF_RUNTIME(DECLARE_OF_RUNTIME)
CHUNKED(DECLARE_NEXT)
OF_RUNTIME(DECLARE_NEXT)

void GOMP_loop_end(void);
void GOMP_loop_end_nowait(void);
bool GOMP_loop_end_cancel(void);
void GOMP_barrier(void);
bool GOMP_barrier_cancel(void);
void omp_get_schedule(int *kind, int *chunk);
int omp_get_max_threads(void);

#endif
