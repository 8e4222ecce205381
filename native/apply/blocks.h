/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Blocks of objects, in this library's memory. */
#ifndef BLOCKS_H
#define BLOCKS_H

#include "space.h"

/* A block of an object; NULL if it is left to the allocator behind. With `zeroed` it has zeros. */
void *block_new(struct object *object, size_t size, size_t alignment, bool zeroed);
/* Frees a block of a span. */
void block_free(struct span *span, void *block);
/* The bytes of a block that may be used. */
size_t block_usable(const struct span *span);
/* Whether a block may stay where it is when it gets another size. */
bool block_fits(const struct span *span, size_t size);

#endif
