/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Included in every file by the Makefile: the library uses the versions of functions that glibc 2.17 has,
 * so that it loads into programs of older systems and containers. A later glibc moved these functions to
 * other files or gave them another version for other callers; for this library they do the same. Functions
 * that 2.17 lacks are in newer.h. Before glibc 2.34 some of these were in libpthread and libdl. The
 * library does not need those files: a program may not have loaded them, and a small system may not have
 * them. So the functions may be missing (newer.h: threads_are_there). */
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
/* Clang loses the weakness of a name with a version; then libpthread must be loaded. */
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
#endif

/* Our own, which does not need libdl: see newer.c. */
#define dlsym numakit_dlsym

#endif
