/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Labels in the recordings that run for this user. */
#ifndef RECORDERS_H
#define RECORDERS_H

#include <stdbool.h>
#include <stddef.h>

/* Why a label was not written; no error if nothing records. */
struct refusal {
    int error; /* EPERM if the directory belongs to another user, or others may write to it */
    char folder[4096];
};

/* Writes a label, of which what is too long is left out, with its ending; returns how many recorders accepted it. This
 * function allocates. */
int recorders_label(const char *text, const char *ending, struct refusal *refusal);

/* Writes to a file whose reader may leave: no signal comes of that. */
bool os_write_line(int file, const char *bytes, size_t length);

#endif
