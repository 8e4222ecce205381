/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which thread gets which core, and when it is free again. */
#define _GNU_SOURCE
#include "check.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static void each_thread_has_a_core(void)
{
    struct waiting one, surplus, next;
    CHECK(has_both(pthread_self()));
    waiting_begin(&one, NULL);
    CHECK(only_cpu(pthread_self()) == first_cpu);
    CHECK(only_cpu(one.id) == second_cpu);
    waiting_begin(&surplus, NULL);
    CHECK(has_both(surplus.id));
    waiting_end(&one);
    waiting_begin(&next, NULL);
    CHECK(only_cpu(next.id) == second_cpu);
    waiting_end(&next);
    waiting_end(&surplus);
}

static pthread_attr_t rich_attributes(void)
{
    pthread_attr_t attributes;
    sigset_t blocked;
    struct sched_param parameters = {0};
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, 300 << 10) == 0);
    CHECK(pthread_attr_setguardsize(&attributes, 12 << 10) == 0);
    CHECK(pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED) == 0);
    CHECK(pthread_attr_setschedpolicy(&attributes, SCHED_OTHER) == 0);
    CHECK(pthread_attr_setschedparam(&attributes, &parameters) == 0);
#if __GLIBC_PREREQ(2, 32)
    CHECK(pthread_attr_setsigmask_np(&attributes, &blocked) == 0);
#else
    CHECK(pthread_sigmask(SIG_BLOCK, &blocked, NULL) == 0);
#endif
    return attributes;
}

static void *look_at_itself(void *argument)
{
    pthread_attr_t own;
    size_t bytes, guard;
    void *lowest;
    sigset_t blocked;
    char on_stack;
    (void)argument;
    CHECK(pthread_getattr_np(pthread_self(), &own) == 0);
    CHECK(pthread_attr_getstack(&own, &lowest, &bytes) == 0);
    CHECK(pthread_attr_getguardsize(&own, &guard) == 0);
    CHECK(bytes >= 280 << 10 && bytes <= 320 << 10 && guard >= 12 << 10);
    CHECK(&on_stack > (char *)lowest && &on_stack < (char *)lowest + bytes);
    CHECK(sched_getscheduler(0) == SCHED_OTHER);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 && sigismember(&blocked, SIGUSR2));
    pthread_attr_destroy(&own);
    return NULL;
}

static void attributes_are_kept(void)
{
    pthread_attr_t attributes = rich_attributes();
    char before[sizeof attributes];
    memcpy(before, &attributes, sizeof before);
    pthread_t id;
    for (int time = 0; time < 3; time++) {
        CHECK(pthread_create(&id, &attributes, look_at_itself, NULL) == 0);
        CHECK(memcmp(before, &attributes, sizeof before) == 0);
        CHECK(pthread_join(id, NULL) == 0);
    }
    pthread_attr_destroy(&attributes);
}

static void explicit_affinity_is_kept(void)
{
    pthread_attr_t attributes;
    cpu_set_t wanted;
    struct waiting thread, other;
    CHECK(pthread_attr_init(&attributes) == 0);
    CPU_ZERO(&wanted);
    CPU_SET(first_cpu, &wanted);
    CPU_SET(second_cpu, &wanted);
    CHECK(pthread_attr_setaffinity_np(&attributes, sizeof wanted, &wanted) == 0);
    waiting_begin(&thread, &attributes);
    CHECK(has_both(thread.id) && has_both(pthread_self()));
    waiting_end(&thread);
    CPU_CLR(first_cpu, &wanted);
    CHECK(pthread_attr_setaffinity_np(&attributes, sizeof wanted, &wanted) == 0);
    waiting_begin(&thread, &attributes);
    CHECK(only_cpu(thread.id) == second_cpu);
    /* Its core counts as taken. */
    waiting_begin(&other, NULL);
    CHECK(only_cpu(pthread_self()) == first_cpu && has_both(other.id));
    waiting_end(&other);
    waiting_end(&thread);
    pthread_attr_destroy(&attributes);
}

static void *sleep_for_ever(void *argument)
{
    sem_post(argument);
    while (pause() < 0)
        continue;
    return NULL;
}

static void *leave_early(void *argument)
{
    pthread_exit(argument);
}

static void cores_of_those_that_end_are_free(void)
{
    struct waiting next;
    sem_t asleep;
    sem_init(&asleep, 0, 0);
    for (int time = 0; time < 20; time++) {
        pthread_t id;
        void *(*function)(void *) = time % 2 ? sleep_for_ever : leave_early;
        CHECK(pthread_create(&id, NULL, function, &asleep) == 0);
        if (time % 2) {
            sem_wait(&asleep);
            CHECK(only_cpu(id) == second_cpu);
            CHECK(pthread_cancel(id) == 0);
        }
        CHECK(pthread_join(id, NULL) == 0);
        waiting_begin(&next, NULL);
        CHECK(only_cpu(next.id) == second_cpu);
        waiting_end(&next);
    }
}

static void *tell(void *argument)
{
    sem_post(argument);
    return NULL;
}

#ifdef __SANITIZE_THREAD__
enum { OWN_THREADS = 2 };
#else
enum { OWN_THREADS = 1 };
#endif

/* Of this process, as the kernel counts them. */
static int threads_now(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static void detached_threads_give_their_core_back(void)
{
    pthread_attr_t attributes;
    sem_t done;
    sem_init(&done, 0, 0);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    for (int time = 0; time < 500; time++) {
        pthread_t id;
        CHECK(pthread_create(&id, &attributes, tell, &done) == 0);
        sem_wait(&done);
    }
    /* The last one may be ending still. */
    for (int tries = 0; threads_now() > OWN_THREADS; tries++) {
        CHECK(tries < 60000);
        usleep(1000);
    }
    struct waiting next;
    waiting_begin(&next, NULL);
    CHECK(only_cpu(next.id) == second_cpu);
    waiting_end(&next);
}

static void *nothing(void *argument)
{
    return argument;
}

static void *create_many(void *argument)
{
    for (long i = 0, count = rounds(500, 2500); i < count; i++) {
        pthread_t id;
        void *result;
        errno = 4711;
        CHECK(pthread_create(&id, NULL, nothing, (void *)i) == 0);
        CHECK(errno == 4711);
        CHECK(pthread_join(id, &result) == 0 && result == (void *)i);
    }
    return argument;
}

static void ten_thousand_threads(void)
{
    pthread_t creators[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&creators[i], NULL, create_many, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(creators[i], NULL) == 0);
    struct waiting next;
    waiting_begin(&next, NULL);
    CHECK(only_cpu(next.id) == second_cpu);
    waiting_end(&next);
}

static void many_at_once(void)
{
    enum { MANY = 200 };
    static struct waiting threads[MANY];
    int bound = 0;
    for (int i = 0; i < MANY; i++)
        waiting_begin(&threads[i], NULL);
    for (int i = 0; i < MANY; i++) {
        bound += only_cpu(threads[i].id) >= 0;
        CHECK(only_cpu(threads[i].id) == second_cpu || has_both(threads[i].id));
    }
    CHECK(bound == 1);
    for (int i = 0; i < MANY; i++)
        waiting_end(&threads[i]);
}

static void *use_some(void *argument)
{
    volatile char some[4096];
    memset((char *)some, 1, sizeof some);
    return argument;
}

static void stacks_of_the_caller_and_small_ones(void)
{
    enum { BYTES = 64 << 10 };
    pthread_attr_t attributes;
    pthread_t id;
    char *memory = mmap(NULL, 3 * BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && mprotect(memory + BYTES, BYTES, PROT_READ | PROT_WRITE) == 0);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, memory + BYTES, BYTES) == 0);
    for (int time = 0; time < 10; time++) {
        CHECK(pthread_create(&id, &attributes, use_some, NULL) == 0);
        CHECK(pthread_join(id, NULL) == 0);
    }
    pthread_attr_destroy(&attributes);
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN) == 0);
    for (int time = 0; time < 10; time++) {
        CHECK(pthread_create(&id, &attributes, use_some, NULL) == 0);
        CHECK(pthread_join(id, NULL) == 0);
    }
    pthread_attr_destroy(&attributes);
}

const struct test PLACING[] = {
    {"each_thread_has_a_core", each_thread_has_a_core, {0}},
    {"attributes_are_kept", attributes_are_kept, {0}},
    {"explicit_affinity_is_kept", explicit_affinity_is_kept, {0}},
    {"cores_of_those_that_end_are_free", cores_of_those_that_end_are_free, {0}},
    {"detached_threads_give_their_core_back", detached_threads_give_their_core_back, {0}},
    {"ten_thousand_threads", ten_thousand_threads, {0}},
    {"many_at_once", many_at_once, {0}},
    {"stacks_of_the_caller_and_small_ones", stacks_of_the_caller_and_small_ones, {0}},
    {0},
};
