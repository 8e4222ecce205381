/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef CHAIN_H
#define CHAIN_H

/* With NUMA_SAMPLE_CHAIN=MILLISECONDS in the environment: runs a chain of loads for that long and ends the process, so
 * that the observer sees where samples of a known load land. */
void chain_begin(char **environment);

#endif
