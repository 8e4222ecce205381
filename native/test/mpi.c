/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A test double of an MPI library that starts a thread. */
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *progress(void *argument)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return argument;
}

void helpers_start(pthread_t *id)
{
    pthread_mutex_lock(&lock);
    pthread_create(id, NULL, progress, NULL);
}

void helpers_stop(pthread_t id)
{
    pthread_mutex_unlock(&lock);
    pthread_join(id, NULL);
}
