/* Kernels on arrays: whose slices were touched by the main thread, by their users, by others. */
#ifndef ARRAYS_H
#define ARRAYS_H

#include "team.h"

enum { THREADS = 8, WORDS = 1 << 21, SLICE = WORDS / THREADS };

static double *a, *b, *c;
static double results[THREADS];

static void touch(double *array, long first, long count)
{
    for (long i = first; i < first + count; i++)
        array[i] = (double)(i & 255);
}

static double *words(long count)
{
    return fresh_memory((size_t)count * sizeof(double));
}

static uint64_t next_random(uint64_t state)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^ state << 17;
}

/* The thread whose memory this one uses where it is shifted: of the next node. */
static long shifted(const struct member *member)
{
    return (member->index + 2) % THREADS;
}

/* Adds 1 to each word of a slice, and gives the sum of what was there. */
static double update(double *array, long slice)
{
    double sum = 0;
    for (long i = slice * SLICE; i < (slice + 1) * SLICE; i++) {
        sum += array[i];
        array[i] += 1;
    }
    return sum;
}

static double array_expected(long repeats)
{
    double rounds = (double)THREADS * SLICE * repeats;
    return rounds * 127.5 + rounds * (repeats - 1) / 2;
}

static void array_main(void)
{
    a = words(WORDS);
    touch(a, 0, WORDS);
}

static void array_own(void)
{
    a = words(WORDS);
}

static void array_touch(struct member *member)
{
    touch(a, (long)member->index * SLICE, SLICE);
}

static void array_work(struct member *member)
{
    for (long repeat = 0; repeat < member->repeats; repeat++)
        results[member->index] += update(a, member->index);
}

static void shifted_work(struct member *member)
{
    for (long repeat = 0; repeat < member->repeats; repeat++)
        results[member->index] += update(a, shifted(member));
}

/* Three arrays: one of the main thread, one of the thread's own, one of another thread. */
static void three_prepare(void)
{
    array_main();
    b = words(WORDS);
    c = words(WORDS);
}

static void three_touch(struct member *member)
{
    touch(b, (long)member->index * SLICE, SLICE);
    touch(c, (long)member->index * SLICE, SLICE);
}

static void three_work(struct member *member)
{
    long own = (long)member->index * SLICE, other = shifted(member) * SLICE;
    for (long repeat = 0; repeat < member->repeats; repeat++) {
        double sum = 0;
        for (long i = 0; i < SLICE; i++) {
            sum += a[own + i] * c[other + i];
            b[own + i] += 1;
        }
        results[member->index] += sum;
    }
}

static double three_expected(long repeats)
{
    double sum = 0;
    for (long i = 0; i < 256; i++)
        sum += (double)(i * i);
    return sum * (WORDS / 256) * repeats;
}

static __thread struct {
    uint64_t word[1 << 18];
} __attribute__((aligned(PAGE))) local;

static void local_work(struct member *member)
{
    uint64_t random = 88172645463325252u + member->index, sum = 0;
    for (long step = 0; step < member->repeats << 16; step++) {
        random = next_random(random);
        local.word[random >> 46]++;
    }
    for (long i = 0; i < 1 << 18; i++)
        sum += local.word[i];
    results[member->index] = (double)sum;
}

static double local_expected(long repeats)
{
    return (double)(THREADS * (repeats << 16));
}

/* Objects of a line each, in lists of objects that different threads made. */
static struct object {
    struct object *next;
    uint64_t value, rest[6];
} *objects;

enum { OBJECTS = 1 << 18, MADE = OBJECTS / THREADS };

static void pool_prepare(void)
{
    objects = fresh_memory(OBJECTS * sizeof *objects);
}

static void pool_touch(struct member *member)
{
    for (long i = 0; i < MADE; i++)
        objects[member->index * MADE + i].value = 1;
}

/* The thread that uses an object: every second one its maker, otherwise one of the others. */
static long user_of(long object)
{
    long maker = object / MADE, place = object % MADE;
    return place % 2 ? (maker + 1 + place / 2 % (THREADS - 1)) % THREADS : maker;
}

/* Links the objects that a thread uses, in an order without pattern. */
static void pool_link(struct member *member)
{
    struct object **list = zeroed(OBJECTS, sizeof *list);
    uint64_t random = 88172645463325252u + member->index;
    long count = 0;
    for (long i = 0; i < OBJECTS; i++)
        if (user_of(i) == member->index)
            list[count++] = &objects[i];
    for (long i = count - 1; i > 0; i--) {
        random = next_random(random);
        long other = random % (i + 1);
        struct object *moved = list[i];
        list[i] = list[other];
        list[other] = moved;
    }
    for (long i = 0; i + 1 < count; i++)
        list[i]->next = list[i + 1];
    member->shared = list[0];
    free(list);
}

static void pool_work(struct member *member)
{
    uint64_t sum = 0;
    for (long repeat = 0; repeat < member->repeats; repeat++)
        for (struct object *at = member->shared; at; at = at->next)
            sum += at->value;
    results[member->index] = (double)sum;
}

static double pool_expected(long repeats)
{
    return (double)OBJECTS * repeats;
}

#endif
