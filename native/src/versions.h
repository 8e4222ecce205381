/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Included in every file by the Makefile: the library asks for functions as glibc 2.28 has them, whatever
 * it is built with, so that it loads into programs of older systems and containers. A later glibc
 * moved these to other files or gave them another version for other callers; what they do here is
 * the same. What 2.28 lacks is in newer.h.
 *
 * Before glibc 2.34 these were in libpthread and libdl. The library does not name those: a program
 * need not have brought them, and a small system of today does not even have their files. So they
 * may be missing where the program runs (newer.h: threads_are_there).
 */
#ifndef VERSIONS_H
#define VERSIONS_H

#if defined(__x86_64__)
#define OLDEST "2.2.5"
#define OLDEST_OF_AFFINITY "2.3.4"
#elif defined(__aarch64__) || (defined(__powerpc64__) && defined(__LITTLE_ENDIAN__))
#define OLDEST "2.17"
#define OLDEST_OF_AFFINITY "2.17"
#endif

#ifdef OLDEST
/* Clang forgets that a name is weak when it gets a version; then libpthread must be there. */
#ifdef __clang__
#define SAY(text)
#else
#define SAY(text) _Pragma(#text)
#endif
#define AS_IN(version, name)                                                                       \
    SAY(weak name)                                                                                 \
    __asm__(".symver " #name "," #name "@GLIBC_" version)
AS_IN(OLDEST, dladdr);
AS_IN(OLDEST, dlsym);
AS_IN(OLDEST, pthread_attr_getguardsize);
AS_IN(OLDEST, pthread_attr_getstack);
AS_IN(OLDEST, pthread_attr_getstacksize);
AS_IN(OLDEST, pthread_attr_setguardsize);
AS_IN(OLDEST, pthread_attr_setstack);
AS_IN(OLDEST, pthread_attr_setstacksize);
AS_IN(OLDEST, pthread_key_create);
AS_IN(OLDEST, pthread_setspecific);
AS_IN(OLDEST, pthread_sigmask);
AS_IN(OLDEST_OF_AFFINITY, pthread_attr_getaffinity_np);
AS_IN(OLDEST_OF_AFFINITY, pthread_attr_setaffinity_np);
AS_IN("2.18", pthread_getattr_default_np);
#endif

/* Ours, which does without libdl: see newer.c. */
#define dlsym numaplace_dlsym

#endif
