/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "measure.h"
#include "attendance.h"
#include "os.h"
#include "settings.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_ROUNDS = 5,       /* below them, a median says little */
    MOST_ROUNDS = 101,
    MOST_CALLS = 1000,      /* in a row */
    VALUES = LARGEST / sizeof(double),
};

/* Seconds: of one side of a round, of a trial, and of all, after which what is left is not measured. Rows are long: in a
 * row of reduces nobody waits for anybody, and the queues of an MPI are longer than this library's, which a few calls do not show. */
static const double ROUND = 2.5e-3, TRIAL = .15, ALL = 5;
/* Of the MPI's time, up to which a row is written. To set up a communicator takes 35 us, which 5 % of a call of .25 us repay in 2,800 calls:
 * less may be noise, and is not worth another order of sums. */
static const double PAYS = .95;

static const int SIZES[] = {8, 256, 1024, 4096};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

#define AS_TEXT(name) #name,
static const char *const NAMES[] = {SERVED(AS_TEXT)};

struct trial {
    enum served operation;
    int bytes, calls, rounds;   /* no rounds: it was not measured */
    double theirs[MOST_ROUNDS], own[MOST_ROUNDS], ratios[MOST_ROUNDS];
};

static const struct mpi_table *mpi;
/* Seconds in timed calls; the same in all ranks, so that they decide the same. */
static double spent;

/* Seconds of a call, in the rank that takes longest. */
static double time_of(const struct trial *trial, bool is_own)
{
    static double in[VALUES], out[VALUES];
    int count = trial->bytes / (int)sizeof(double);
    mpi->call(SERVED_Barrier, true, in, out, 0);
    uint64_t begin = os_time(CLOCK_MONOTONIC);
    for (int i = 0; i < trial->calls; i++) {
        /* Otherwise caches may have the answer. */
        in[0] = i;
        mpi->call(trial->operation, is_own, in, out, count);
    }
    double time = mpi->largest((double)(os_time(CLOCK_MONOTONIC) - begin) * 1e-9);
    spent += time;
    return time / trial->calls;
}

static double least_time_of(const struct trial *trial, bool is_own)
{
    double first = time_of(trial, is_own), second = time_of(trial, is_own);
    return first < second ? first : second;
}

/* The calls of a row, which is to take long enough. */
static void choose_calls(struct trial *trial)
{
    enum { STEP = 8 };
    double both = 0;
    for (trial->calls = 1; trial->calls <= MOST_CALLS; trial->calls *= STEP) {
        both = least_time_of(trial, false) + least_time_of(trial, true);
        if (both * trial->calls * STEP > 2 * ROUND)
            break;
    }
    double wanted = 2 * ROUND / (both > 0 ? both : ROUND);
    trial->calls = wanted < 1 ? 1 : wanted < MOST_CALLS ? (int)wanted : MOST_CALLS;
}

static void run(struct trial *trial)
{
    double begin = spent;
    trial->rounds = 0;
    if (spent > ALL)
        return;
    choose_calls(trial);
    for (int round = 0; round < MOST_ROUNDS && (round < LEAST_ROUNDS || spent - begin < TRIAL); round++) {
        double times[2];
        for (int turn = 0; turn < 2; turn++) {
            bool is_own = (turn + round) & 1;
            times[is_own] = time_of(trial, is_own);
        }
        trial->theirs[round] = times[0];
        trial->own[round] = times[1];
        trial->ratios[round] = times[0] > 0 ? times[1] / times[0] : 1;
        trial->rounds = round + 1;
    }
}

static int before(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted values. */
static double quantile(const double *values, int count, double share)
{
    return values[(int)(share * (count - 1) + .5)];
}

struct text {
    char *at;
    size_t room;
};

static __attribute__((format(printf, 2, 3))) void print(struct text *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text->at, text->room, format, values);
    va_end(values);
    size_t done = length < 0 ? 0 : (size_t)length < text->room ? (size_t)length : text->room - 1;
    text->at += done;
    text->room -= done;
}

/* Whole numbers: a program may have chosen a comma for fractions. */
static void print_values(struct text *text, double *values, int count, double unit)
{
    qsort(values, (size_t)count, sizeof *values, before);
    for (int i = 0; i < 3; i++) {
        static const double SHARES[] = {.1, .5, .9};
        print(text, " %.0f", quantile(values, count, SHARES[i]) * unit);
    }
}

/* The lines of one operation. */
static void print_operation(struct text *text, struct trial *trials, int count, const char *library, int size)
{
    int most = -1;
    bool pays = true;
    for (int i = 0; i < count; i++) {
        struct trial *trial = &trials[i];
        pays &= trial->rounds > 0;
        if (trial->rounds == 0)
            continue;
        print(text, "measured %s %d %d %d", NAMES[trial->operation], size, trial->bytes, trial->rounds);
        print_values(text, trial->theirs, trial->rounds, 1e12);
        print_values(text, trial->own, trial->rounds, 1e12);
        print_values(text, trial->ratios, trial->rounds, 1e6);
        print(text, " %s\n", library);
        pays &= quantile(trial->ratios, trial->rounds, .5) <= PAYS;
        if (pays)
            most = trial->bytes;
    }
    if (most >= 0)
        print(text, "%s %d %d %d %s\n", NAMES[trials->operation], size, size, most, library);
}

/* The part of the text before what differs between builds of the same version. */
static void shorten(char *to, size_t room, const char *library)
{
    size_t length = strcspn(library, ",\r\n");
    length = length < room - 1 ? length : room - 1;
    memcpy(to, library, length);
    to[length] = 0;
}

static int write_to_table(const char *text)
{
    char said[512];
    int error = settings()->table ? os_append(settings()->table, text) : 0;
    if (!settings()->table) {
        snprintf(said, sizeof said, "libnumampi.so: %s", text);
        os_print(said);
    } else if (error) {
        snprintf(said, sizeof said, "libnumampi.so: cannot write to %.200s, the file of NUMAMPI_TABLE: %s\n", settings()->table,
                 strerror(-error));
        os_print(said);
    }
    return error;
}

void measure_refused(const char *reason)
{
    char line[600];
    snprintf(line, sizeof line, "refused %s\n", reason);
    write_to_table(line);
}

void measure(const struct mpi_table *table, const char *library, int rank, int size)
{
    static struct trial trials[SIZE_COUNT];
    static char lines[16384], version[160];
    struct text text = {lines, sizeof lines};
    int status = 0;
    mpi = table;
    shorten(version, sizeof version, library);
    for (int operation = 0; operation < SERVED_COUNT; operation++) {
        int count = operation == SERVED_Barrier ? 1 : SIZE_COUNT;
        for (int i = 0; i < count; i++) {
            trials[i].operation = (enum served)operation;
            trials[i].bytes = operation == SERVED_Barrier ? 0 : SIZES[i];
            run(&trials[i]);
        }
        print_operation(&text, trials, count, version, size);
    }
    if (rank == 0)
        status = write_to_table(lines) ? 1 : 0;
    mpi->finish();
    /* With what is to be done at the end: MPICH tells its launcher only then that all is well. */
    exit(status);
}
