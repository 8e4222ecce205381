/* limited BYTES
 *
 * A thread on each node takes blocks of BYTES until there are no more. Prints the MiB that they have together. */
#define _GNU_SOURCE
#include "placement.h"
#include <pthread.h>
#include <stdatomic.h>

static size_t bytes;
static int nodes[MAX_NODES];
static pthread_t threads[MAX_NODES];
static pthread_barrier_t started;
static atomic_size_t blocks;

static void *take_all(void *node)
{
    void **block, **last = NULL;
    bind_to_cpu(first_cpu_of_node(*(int *)node));
    free(malloc(bytes));
    pthread_barrier_wait(&started);
    for (; (block = malloc(bytes)); blocks++) {
        *block = last;
        last = block;
    }
    return last;
}

int main(int count, char **words)
{
    if (count != 2)
        bad_arguments("usage: limited BYTES");
    bytes = (size_t)number("BYTES", words[1], 8, 1 << 30);
    int node_count = numbers_of(NODE_FILE "has_cpu", nodes, MAX_NODES);
    if (node_count < 1)
        fail("%shas_cpu names no node", NODE_FILE);
    pthread_barrier_init(&started, NULL, (unsigned)node_count);
    for (int i = 0; i < node_count; i++)
        if (pthread_create(&threads[i], NULL, take_all, &nodes[i]))
            fail("cannot start thread %d", i);
    for (int i = 0; i < node_count; i++)
        pthread_join(threads[i], NULL);
    printf("%zu\n", blocks * bytes >> 20);
    return 0;
}
