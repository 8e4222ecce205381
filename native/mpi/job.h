/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef MPI_JOB_H
#define MPI_JOB_H

#include <stdint.h>

/* A number that all ranks of an MPI_COMM_WORLD on this machine have in common, and no others at the same time: what their
 * launcher tells them, else their launcher. */
uint64_t job_of(char **environment);

#endif
