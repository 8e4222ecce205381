/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Arguments of a new thread from its creator. */
#ifndef STARTS_H
#define STARTS_H

#include "base/records.h"
#include "thread.h"

struct start {
    struct record record;
    struct place place;
    size_t stack_bytes;     /* distance of `place.bottom` from the top, if it is unknown */
    bool has_policy;        /* `policy` is to be restored */
    struct policy policy;
};

extern struct records starts;

#endif
