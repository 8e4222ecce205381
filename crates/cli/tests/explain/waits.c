// Threads that wait: waits MODE. It ends when it has computed for long enough, or after some seconds.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 4, POOL = 8, ROUNDS = 120, SECONDS = 3 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t new_work = PTHREAD_COND_INITIALIZER;
static volatile int has_ended, ready;
static volatile double sink;

__attribute__((noinline)) static void compute(int rounds) {
    double value = 1;
    for (long n = 0; n < rounds * 1000000L; n++)
        value = value * 0.9999 + 0.1;
    sink = value;
}

__attribute__((noinline)) static void change_table(void) {
    pthread_mutex_lock(&table_lock);
    compute(2);
    pthread_mutex_unlock(&table_lock);
}

static void *contender(void *unused) {
    while (!has_ended)
        change_table();
    return unused;
}

static void *pool(void *unused) {
    pthread_mutex_lock(&table_lock);
    while (!has_ended)
        pthread_cond_wait(&new_work, &table_lock);
    pthread_mutex_unlock(&table_lock);
    return unused;
}

// Looks at memory until another thread has done its part.
__attribute__((noinline)) static void spin_until_ready(void) {
    while (!ready)
#ifdef __x86_64__
        __builtin_ia32_pause();
#else
        __asm__ volatile("yield");
#endif
}

static void *spinner(void *unused) {
    spin_until_ready();
    return unused;
}

static void start(int count, void *(*function)(void *), pthread_t *threads) {
    for (int n = 0; n < count; n++)
        pthread_create(&threads[n], NULL, function, NULL);
}

static void join(int count, pthread_t *threads) {
    for (int n = 0; n < count; n++)
        pthread_join(threads[n], NULL);
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    pthread_t threads[POOL];
    int ends[2];
    char byte;
    if (!strcmp(mode, "lock")) {
        start(WORKERS, contender, threads);
        sleep(SECONDS);
        has_ended = 1;
        join(WORKERS, threads);
    } else if (!strcmp(mode, "pool")) {
        start(POOL, pool, threads);
        for (int n = 0; n < ROUNDS; n++)
            compute(10);
        pthread_mutex_lock(&table_lock);
        has_ended = 1;
        pthread_cond_broadcast(&new_work);
        pthread_mutex_unlock(&table_lock);
        join(POOL, threads);
    } else if (!strcmp(mode, "spin")) {
        start(1, spinner, threads);
        for (int n = 0; n < ROUNDS; n++)
            compute(10);
        ready = 1;
        join(1, threads);
    } else if (!strcmp(mode, "pipe") && !pipe(ends)) {
        if (!fork()) {
            sleep(SECONDS);
            _exit(0);
        }
        close(ends[1]);
        return read(ends[0], &byte, 1) != 0;
    } else if (!strcmp(mode, "child")) {
        if (!fork()) {
            sleep(SECONDS);
            _exit(0);
        }
        return wait(NULL) < 0;
    } else {
        fprintf(stderr, "usage: waits lock|pool|spin|pipe|child\n");
        return 2;
    }
    return 0;
}
