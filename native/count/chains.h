/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Call chains of sampled allocations, and the files with their code. */
#ifndef COUNT_CHAINS_H
#define COUNT_CHAINS_H

#include "layout.h"
#include <stdbool.h>

/* Finds the unwinder of the C++ runtime; without it, chains have one address. Called before there are threads, since the
 * loader is asked. False without it. */
bool chains_begin(bool wanted);

/* Notes the files with code that are not noted yet. */
void chains_note_modules(struct count_file *file, uint64_t image);

/* The entry of the chain that leads here; -1 without room. `caller` is behind the call of malloc. `image` is the place of
 * the process that executed the program. */
long chains_site(struct count_file *file, uint64_t image, uintptr_t caller);

#endif
