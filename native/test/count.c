/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Its exit status is the number of CPUs that it may use; linked statically, so that nothing changes the
 * inherited mask. */
#define _GNU_SOURCE
#include <sched.h>

int main(void)
{
    cpu_set_t mask;
    return sched_getaffinity(0, sizeof mask, &mask) ? 99 : CPU_COUNT(&mask);
}
