/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The ranks of a job on this machine find each other, without a message of the MPI: a rank may lack this library. */
#ifndef MPI_MEETING_H
#define MPI_MEETING_H

#include "attendance.h"
#include <stdbool.h>

/* What the ranks share; NULL if this one takes no part. */
extern struct shared *meeting;

/* Before MPI_Init, with the text of MPI_Get_library_version. False, and the reason, if this rank takes no part. */
bool meeting_come(uint64_t job, const char *library, const char **reason);
/* After MPI_Init, of a rank of MPI_COMM_WORLD, which has this number of ranks. Does not attend if it may not. */
bool meeting_attend(int rank, int world, bool may, const char **reason);

/* Whether a rank of MPI_COMM_WORLD takes part. All ranks get the same answer. `progress` is called while it is not decided. */
bool meeting_has(int rank, void (*progress)(void));

/* Memory for this number of parts, those of each on its node; `base` is above the numbers of all collectives that used it. The offset
 * from the beginning of what is shared, 0 if there is no room. The memory is free when all ranks have left. */
uint64_t meeting_take(int parts, const int *nodes, uint64_t *base);
/* NULL if there is none there. */
struct part *meeting_parts(uint64_t offset, int parts);

#endif
