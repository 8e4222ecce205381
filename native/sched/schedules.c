/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "schedules.h"

bool schedule_of_runtime(const struct runtime *runtime, long *chunk)
{
    /* As omp_sched_t; the modifier monotonic is a bit. */
    enum { DYNAMIC = 2, GUIDED = 3 };
    typedef void get_schedule(int *kind, int *chunk);
    int kind = 0, units = 1;
    if (!runtime->functions[F_omp_get_schedule])
        return false;
    ((get_schedule *)runtime->functions[F_omp_get_schedule])(&kind, &units);
    *chunk = units;
    return kind == DYNAMIC || kind == GUIDED;
}
