/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Its status is the number of CPUs that it may use; linked statically, so that it finds what it
 * inherited and nothing changes that. */
#define _GNU_SOURCE
#include <sched.h>

int main(void)
{
    cpu_set_t mask;
    return sched_getaffinity(0, sizeof mask, &mask) ? 99 : CPU_COUNT(&mask);
}
