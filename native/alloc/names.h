/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The names of the functions: those of the C library, or with a prefix, for tests beside another malloc. */
#ifndef ALLOC_NAMES_H
#define ALLOC_NAMES_H

#ifdef NUMALLOC_PREFIX
#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b) JOIN_AGAIN(a, b)
#define NAME(name) JOIN(NUMALLOC_PREFIX, name)
#else
#define NAME(name) name
#endif

#define EXPORT __attribute__((visibility("default")))

#endif
