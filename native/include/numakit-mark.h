/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef NUMAKIT_MARK_H
#define NUMAKIT_MARK_H

/* Marks for the simulated machine, which counts what happens between NUMAKIT_MARK_BEGIN() and
 * NUMAKIT_MARK_END(). Each is one x86-64 instruction that does nothing on a processor, needs no privilege
 * and touches no memory; the compiler moves no loads and stores across it. On other architectures the
 * macros are empty. */
#if defined(__x86_64__)
/* nopl 0x534e4d01(%rax) */
#define NUMAKIT_MARK_BEGIN() __asm__ __volatile__(".byte 0x0f, 0x1f, 0x80, 0x01, 0x4d, 0x4e, 0x53" ::: "memory")
/* nopl 0x534e4d02(%rax) */
#define NUMAKIT_MARK_END() __asm__ __volatile__(".byte 0x0f, 0x1f, 0x80, 0x02, 0x4d, 0x4e, 0x53" ::: "memory")
#else
#define NUMAKIT_MARK_BEGIN() ((void)0)
#define NUMAKIT_MARK_END() ((void)0)
#endif

#endif
