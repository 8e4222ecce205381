// Two threads that use memory at the same time: contended KIND shared|apart SECONDS. With `apart`, each thread has lines
// of its own, and nothing is contended. Prints the nanoseconds of an operation.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE = 64, FAR = 4096 };

static _Alignas(FAR) char memory[4 * FAR];
static atomic_int stop;
static size_t stride;
static uint64_t operations[2 * LINE];
static const char *kind;

// A lock and a counter on one line.
struct locked {
    union {
        pthread_mutex_t mutex;
        atomic_flag spin;
    };
    volatile uint64_t counter;
};

static volatile uint64_t *word(size_t thread, size_t near) {
    return (volatile uint64_t *)(memory + thread * (stride ? stride : near));
}

__attribute__((noinline)) static uint64_t atomic_counters(size_t thread) {
    _Atomic uint64_t *counter = (_Atomic uint64_t *)word(thread, 8);
    uint64_t n = 0;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); n += 64)
        for (int i = 0; i < 64; i++) atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    return n;
}

__attribute__((noinline)) static uint64_t one_atomic(size_t thread) {
    _Atomic uint64_t *counter = (_Atomic uint64_t *)word(thread, 0);
    uint64_t n = 0;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); n += 64)
        for (int i = 0; i < 64; i++) atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    return n;
}

__attribute__((noinline)) static uint64_t plain_counters(size_t thread) {
    volatile uint64_t *counter = word(thread, 8);
    uint64_t n = 0;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); n += 64)
        for (int i = 0; i < 64; i++) *counter = *counter + 1;
    return n;
}

__attribute__((noinline)) static uint64_t counters_with_work(size_t thread) {
    volatile uint64_t *counter = word(thread, 8);
    uint64_t n = 0, x = 88172645463325252u + thread;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); n += 64)
        for (int i = 0; i < 64; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            *counter = *counter + (x & 1);
        }
    return n;
}

__attribute__((noinline)) static uint64_t mutex(size_t thread) {
    struct locked *at = (struct locked *)word(thread, 0);
    uint64_t n = 0;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); n++) {
        pthread_mutex_lock(&at->mutex);
        at->counter = at->counter + 1;
        pthread_mutex_unlock(&at->mutex);
    }
    return n;
}

__attribute__((noinline)) static uint64_t spin_lock(size_t thread) {
    struct locked *at = (struct locked *)word(thread, 0);
    uint64_t n = 0;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); n++) {
        while (atomic_flag_test_and_set_explicit(&at->spin, memory_order_acquire)) {
            if (atomic_load_explicit(&stop, memory_order_relaxed)) return n;
        }
        at->counter = at->counter + 1;
        atomic_flag_clear_explicit(&at->spin, memory_order_release);
    }
    return n;
}

__attribute__((noinline)) static uint64_t writer_and_reader(size_t thread) {
    volatile uint64_t *at = word(thread, 8);
    uint64_t n = 0, sum = 0;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); n += 64)
        for (int i = 0; i < 64; i++) {
            if (thread == 0)
                *at = n + i;
            else
                sum += *at;
        }
    return n + (sum == 1);
}

static uint64_t (*const functions[])(size_t) = {atomic_counters, one_atomic, plain_counters, counters_with_work, mutex, spin_lock, writer_and_reader};
static const char *const names[] = {"atomic-counters", "one-atomic", "plain-counters", "counters-with-work", "mutex", "spin-lock", "writer-and-reader"};

static uint64_t (*function)(size_t);

static void *run(void *thread) {
    operations[(size_t)thread * LINE] = function((size_t)thread);
    return NULL;
}

int main(int count, char **words) {
    if (count != 4) return fprintf(stderr, "contended KIND shared|apart SECONDS\n"), 2;
    kind = words[1];
    stride = strcmp(words[2], "apart") ? 0 : FAR;
    for (size_t at = 0; at < sizeof names / sizeof *names; at++)
        if (!strcmp(kind, names[at])) function = functions[at];
    if (!function) return fprintf(stderr, "there is no kind %s\n", kind), 2;
    double seconds = atof(words[3]);
    pthread_t threads[2];
    for (size_t thread = 0; thread < 2; thread++) pthread_create(&threads[thread], NULL, run, (void *)thread);
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)}, NULL);
    atomic_store(&stop, 1);
    for (size_t thread = 0; thread < 2; thread++) pthread_join(threads[thread], NULL);
    printf("%.2f ns\n", seconds * 1e9 * 2 / (double)(operations[0] + operations[LINE]));
    return 0;
}
