/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which loops may run with shares. */
#ifndef SCHED_SCHEDULES_H
#define SCHED_SCHEDULES_H

#include "runtimes.h"
#include <stdbool.h>

/* What a caller says of a loop by the function that it calls. */
enum schedule {
    S_dynamic, S_guided, S_nonmonotonic_dynamic, S_nonmonotonic_guided,
    S_runtime, S_nonmonotonic_runtime, S_maybe_nonmonotonic_runtime,
};

/* Compilers before OpenMP 4.0 know no monotonic loops: they begin regions with GOMP_parallel_start. Later ones mean a
 * monotonic loop where they leave out the adjective: the members' chunks must come in the order of the loop. */
static inline bool schedule_is_free(enum schedule schedule, bool is_old)
{
    return is_old || (schedule != S_dynamic && schedule != S_guided && schedule != S_runtime);
}

/* Whether what OMP_SCHEDULE or omp_set_schedule says is free too, and its chunk. */
bool schedule_of_runtime(const struct runtime *runtime, long *chunk);

#endif
