/* blocks pairs|mesh [ROUNDS [TURNS]]     default 6 1
 *
 * What programs do with blocks whose threads end and begin, as those of parallel phases and of connections do. In each
 * round there is a thread for each CPU, always the same one on the same CPU, with a stack of its node; what is shared
 * by threads of a node lies there. So the lines of blocks are nearly all that can leave a node, and none has to. Each
 * thread does its work TURNS times. With several rounds there is one more before the count begins.
 *
 *   pairs   on each node one thread allocates objects and writes 20 lines of each; the next one reads these as often,
 *           keeps some objects, and frees those that it has longest, which may be of an earlier round
 *   mesh    each thread has patches of 16 KiB to 1 MiB and more, up to a total; in each step one comes, grows or goes, and
 *           one sweep over some of them follows; in the next round a new thread goes on with them */
#define _GNU_SOURCE
#include "lines.h"
#include "numakit-mark.h"
#include "placement.h"
#include <pthread.h>
#include <stdatomic.h>

#define USAGE "usage: blocks pairs|mesh [ROUNDS [TURNS]]"

enum { MOST_CPUS = 64, STACK = 256 << 10 };
enum { OBJECTS = 4000, TOUCHES = 20, OBJECT = TOUCHES * LINE, RING = 512, KEPT = 1024 };
enum { PATCHES = 32, LEAST = 16 << 10, MOST_DOUBLINGS = 6, LIVE = 6 << 20, STEPS = 48, SWEPT = 6 };

/* What threads of all rounds have on a CPU; the first CPU of a node has the ring of both. */
struct seat {
    int cpu;
    struct seat *producer;
    pthread_t id;
    void *stack;
    uint64_t state;
    /* pairs */
    _Atomic(char *) ring[RING];
    char *kept[KEPT];
    size_t taken;
    /* mesh */
    struct patch {
        char *start;
        size_t bytes;
    } patches[PATCHES];
    size_t live;
};

static uint64_t below(struct seat *seat, uint64_t limit)
{
    seat->state ^= seat->state << 13;
    seat->state ^= seat->state >> 7;
    seat->state ^= seat->state << 17;
    return (seat->state >> 11) % limit;
}

static char *block_of(char *old, size_t bytes)
{
    char *block = realloc(old, bytes);
    if (!block)
        fail("no memory for %zu bytes", bytes);
    return block;
}

static void produce(struct seat *seat)
{
    for (int i = 0; i < OBJECTS; i++) {
        char *object = block_of(NULL, OBJECT);
        write_lines(object, OBJECT, (uintptr_t)object);
        while (atomic_load_explicit(&seat->ring[i % RING], memory_order_relaxed))
            sched_yield();
        atomic_store(&seat->ring[i % RING], object);
    }
}

static void consume(struct seat *seat)
{
    for (int i = 0; i < OBJECTS; i++, seat->taken++) {
        _Atomic(char *) *place = &seat->producer->ring[i % RING];
        char *object;
        while (!(object = atomic_load(place)))
            sched_yield();
        atomic_store(place, NULL);
        if (read_lines(object, OBJECT) != TOUCHES * (uintptr_t)object)
            fail("an object does not hold what was written");
        char **kept = &seat->kept[seat->taken % KEPT];
        free(*kept);
        *kept = object;
    }
}

static void pairs(struct seat *seat)
{
    if (seat->producer == seat)
        produce(seat);
    else
        consume(seat);
}

static void drop(struct seat *seat, struct patch *patch)
{
    free(patch->start);
    seat->live -= patch->bytes;
    *patch = (struct patch){0};
}

/* A patch of that size; what is new in it is zero. */
static void resize(struct seat *seat, struct patch *patch, size_t bytes)
{
    patch->start = block_of(patch->start, bytes);
    write_lines(patch->start + patch->bytes, bytes - patch->bytes, 0);
    seat->live += bytes - patch->bytes;
    patch->bytes = bytes;
}

static void mesh(struct seat *seat)
{
    for (int step = 0; step < STEPS; step++) {
        size_t at = below(seat, PATCHES);
        struct patch *patch = &seat->patches[at];
        if (patch->bytes && below(seat, 10) < 3) {
            resize(seat, patch, (patch->bytes + patch->bytes * (1 + below(seat, 10)) / 10) / LINE * LINE);
        } else {
            drop(seat, patch);
            size_t least = (size_t)LEAST << below(seat, MOST_DOUBLINGS);
            resize(seat, patch, (least + below(seat, least)) / LINE * LINE);
        }
        for (size_t i = at + 1; seat->live > LIVE; i++)
            if (i % PATCHES != at)
                drop(seat, &seat->patches[i % PATCHES]);
        for (size_t i = at; i < at + SWEPT; i++)
            increment_lines(seat->patches[i % PATCHES].start, seat->patches[i % PATCHES].bytes);
    }
}

static void (*body)(struct seat *);
static long turns = 1;

static void *work(void *argument)
{
    struct seat *seat = argument;
    bind_to_cpu(seat->cpu);
    for (long turn = 0; turn < turns; turn++)
        body(seat);
    return NULL;
}

static void run_round(struct seat **seats, int count)
{
    for (int i = 0; i < count; i++) {
        pthread_attr_t attributes;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(seats[i]->cpu, &one);
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, seats[i]->stack, STACK);
        pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
        int wrong = pthread_create(&seats[i]->id, &attributes, work, seats[i]);
        if (wrong)
            fail("cannot start thread %d: %s", i, strerror(wrong));
        pthread_attr_destroy(&attributes);
    }
    for (int i = 0; i < count; i++)
        pthread_join(seats[i]->id, NULL);
}

static void *memory_of(int node, size_t bytes)
{
    void *memory = fresh_memory(bytes);
    place_memory(memory, bytes, MPOL_BIND, node, 0);
    touch_pages(memory, bytes);
    return memory;
}

/* Of each node the CPUs one after the other, two at a time. */
static int make_seats(struct seat **seats)
{
    int nodes[MAX_NODES], cpus[MOST_CPUS], count = 0;
    int node_count = numbers_of(NODE_FILE "has_cpu", nodes, MAX_NODES);
    for (int n = 0; n < node_count; n++) {
        int of_node = cpus_of_node(nodes[n], cpus, MOST_CPUS - count) / 2 * 2;
        for (int i = 0; i < of_node; i++, count++) {
            struct seat *seat = seats[count] = memory_of(nodes[n], (sizeof *seat + PAGE - 1) / PAGE * PAGE);
            seat->cpu = cpus[i];
            seat->producer = seats[count - i % 2];
            seat->stack = memory_of(nodes[n], STACK);
            seat->state = (uint64_t)(count + 1) * 0x9e3779b97f4a7c15;
        }
    }
    if (!count)
        fail("no node has two CPUs");
    return count;
}

int main(int count, char **words)
{
    static struct seat *seats[MOST_CPUS];
    bool has_pairs = count > 1 && strcmp(words[1], "pairs") == 0;
    if (count < 2 || count > 4 || (!has_pairs && strcmp(words[1], "mesh")))
        bad_arguments(USAGE);
    body = has_pairs ? pairs : mesh;
    long rounds = count > 2 ? number("ROUNDS", words[2], 1, 10000) : 6;
    if (count > 3)
        turns = number("TURNS", words[3], 1, 10000);
    int threads = make_seats(seats);
    if (rounds > 1)
        run_round(seats, threads);
    NUMAKIT_MARK_BEGIN();
    for (long round = 0; round < rounds; round++)
        run_round(seats, threads);
    NUMAKIT_MARK_END();
    printf("threads %d\nrounds %ld\n", threads, rounds);
    return 0;
}
