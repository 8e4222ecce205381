/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Included before the scheduler's own code: what touching a line costs. */
#ifndef SIMULATED_H
#define SIMULATED_H

#include <stdbool.h>

void simulated_cost(const volatile void *address, bool is_written);
#define SHARES_COST(line, is_written) simulated_cost(line, is_written)

#endif
