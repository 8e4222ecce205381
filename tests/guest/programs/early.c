/* early [MIB [CHILDREN]]     default 8 0
 *
 * The main thread starts CHILDREN children, one after the other, which end at once; touches MIB of
 * memory; creates and joins one thread; and tells where its memory is then, seen from its CPU. */
#define _GNU_SOURCE
#include "placement.h"
#include <pthread.h>
#include <sys/wait.h>

#define USAGE "usage: early [MIB [CHILDREN]]"

static void *nothing(void *argument)
{
    return argument;
}

int main(int count, char **words)
{
    if (count > 3)
        bad_arguments(USAGE);
    size_t bytes = (size_t)(count > 1 ? number("MIB", words[1], 1, 1024) : 8) << 20;
    int children = count > 2 ? number("CHILDREN", words[2], 0, 1000) : 0, status, cpus[2];
    for (int i = 0; i < children; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        if (child < 0 || waitpid(child, &status, 0) != child)
            fail("a child failed");
    }
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("no address space");
    touch_pages(memory, bytes);
    pthread_t thread;
    int wrong = pthread_create(&thread, NULL, nothing, NULL);
    if (wrong || pthread_join(thread, NULL))
        fail("cannot start a thread: %s", strerror(wrong));
    long pages[MAX_NODES] = {0}, elsewhere = 0;
    bool is_bound = allowed_cpus(cpus, 2) == 1;
    int node = node_of_cpu(sched_getcpu());
    count_pages(memory, bytes, pages);
    for (int at = 0; at < MAX_NODES; at++)
        elsewhere += at == node ? 0 : pages[at];
    printf("bound %d\nnode %d\npages_at_home %ld\npages_elsewhere %ld\n", is_bound, node, pages[node], elsewhere);
    return 0;
}
