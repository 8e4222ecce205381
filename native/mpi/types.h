/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Types whose values lie without gaps, and operations that combine them: their names, and what they are in each ABI. */
#ifndef MPI_TYPES_H
#define MPI_TYPES_H

/* Kinds of types, as the standard names them where it says what can be combined. */
enum { NO_KIND = 0, C_INTEGER = 1, F_INTEGER = 2, FLOATING = 4, COMPLEX = 8, LOGICAL = 16, BYTES = 32, MULTI = 64 };
enum {
    NUMBERS = C_INTEGER | F_INTEGER | FLOATING | MULTI,
    SUMMABLE = NUMBERS | COMPLEX,
    TRUTHS = C_INTEGER | LOGICAL,
    BIT_FIELDS = C_INTEGER | F_INTEGER | BYTES | MULTI,
};

/* Name, kind, variable of Open MPI, number of MPICH, number of the standard ABI. */
#define PLAIN_TYPES(DO)                                                                                                \
    DO(DOUBLE, FLOATING, double, 0x4c00080b, 0x214) DO(FLOAT, FLOATING, float, 0x4c00040a, 0x210)                      \
    DO(INT, C_INTEGER, int, 0x4c000405, 0x209) DO(LONG, C_INTEGER, long, 0x4c000807, 0x20a)                            \
    DO(DOUBLE_PRECISION, FLOATING, dblprec, 0x4c00081f, 0x21c) DO(INTEGER, F_INTEGER, integer, 0x4c00041b, 0x219)      \
    DO(REAL, FLOATING, real, 0x4c00041c, 0x21a) DO(LOGICAL, LOGICAL, logical, 0x4c00041d, 0x218)                       \
    DO(BYTE, BYTES, byte, 0x4c00010d, 0x247) DO(CHAR, NO_KIND, char, 0x4c000101, 0x243)                                \
    DO(CHARACTER, NO_KIND, character, 0x4c00011a, 0x21e) DO(SIGNED_CHAR, C_INTEGER, signed_char, 0x4c000118, 0x244)    \
    DO(UNSIGNED_CHAR, C_INTEGER, unsigned_char, 0x4c000102, 0x245) DO(SHORT, C_INTEGER, short, 0x4c000203, 0x208)      \
    DO(UNSIGNED_SHORT, C_INTEGER, unsigned_short, 0x4c000204, 0x20c)                                                   \
    DO(UNSIGNED, C_INTEGER, unsigned, 0x4c000406, 0x20d)                                                               \
    DO(UNSIGNED_LONG, C_INTEGER, unsigned_long, 0x4c000808, 0x20e)                                                     \
    DO(LONG_LONG, C_INTEGER, long_long_int, 0x4c000809, 0x20b)                                                         \
    DO(UNSIGNED_LONG_LONG, C_INTEGER, unsigned_long_long, 0x4c000819, 0x20f)                                           \
    DO(LONG_DOUBLE, FLOATING, long_double, 0x4c00100c, 0x220)                                                          \
    DO(INT8_T, C_INTEGER, int8_t, 0x4c000137, 0x240) DO(UINT8_T, C_INTEGER, uint8_t, 0x4c00013b, 0x241)                \
    DO(INT16_T, C_INTEGER, int16_t, 0x4c000238, 0x248) DO(UINT16_T, C_INTEGER, uint16_t, 0x4c00023c, 0x249)            \
    DO(INT32_T, C_INTEGER, int32_t, 0x4c000439, 0x250) DO(UINT32_T, C_INTEGER, uint32_t, 0x4c00043d, 0x251)            \
    DO(INT64_T, C_INTEGER, int64_t, 0x4c00083a, 0x258) DO(UINT64_T, C_INTEGER, uint64_t, 0x4c00083e, 0x259)            \
    DO(C_BOOL, LOGICAL, c_bool, 0x4c00013f, 0x238)                                                                     \
    DO(C_FLOAT_COMPLEX, COMPLEX, c_float_complex, 0x4c000840, 0x212)                                                   \
    DO(C_DOUBLE_COMPLEX, COMPLEX, c_double_complex, 0x4c001041, 0x216)                                                 \
    DO(COMPLEX, COMPLEX, cplex, 0x4c00081e, 0x21b) DO(DOUBLE_COMPLEX, COMPLEX, dblcplex, 0x4c001022, 0x21d)            \
    DO(AINT, MULTI, aint, 0x4c000843, 0x201) DO(OFFSET, MULTI, offset, 0x4c000844, 0x203)                              \
    DO(COUNT, MULTI, count, 0x4c000845, 0x202)

/* Operations that are MPI's own, and for which the order of ranks does not matter; the others are left to the MPI. */
#define PLAIN_OPERATIONS(DO)                                                                                           \
    DO(SUM, SUMMABLE, sum, 0x58000003, 0x21) DO(MAX, NUMBERS, max, 0x58000001, 0x23)                                   \
    DO(MIN, NUMBERS, min, 0x58000002, 0x22) DO(PROD, SUMMABLE, prod, 0x58000004, 0x24)                                 \
    DO(LAND, TRUTHS, land, 0x58000005, 0x30) DO(LOR, TRUTHS, lor, 0x58000007, 0x31)                                    \
    DO(LXOR, TRUTHS, lxor, 0x58000009, 0x32) DO(BAND, BIT_FIELDS, band, 0x58000006, 0x28)                              \
    DO(BOR, BIT_FIELDS, bor, 0x58000008, 0x29) DO(BXOR, BIT_FIELDS, bxor, 0x5800000a, 0x2a)

#endif
