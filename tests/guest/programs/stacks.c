/* stacks parent|own|free [THREADS [KIB [REPEATS]]]     default 8 2048 3
 *
 * One bound thread for each CPU sweeps an array of KIB on its stack REPEATS times, between the
 * markers. The stack was first touched by the parent, on the first CPU's node, or by the thread
 * itself: nothing else differs, so the difference in traffic is what first touch costs. `free` is
 * like `parent`, but threads stay on the CPUs that they are given with the program. */
#define _GNU_SOURCE
#include "lines.h"
#include "team.h"

#define USAGE "usage: stacks parent|own|free [THREADS [KIB [REPEATS]]]"

/* For what the thread needs beside the array. */
enum { SLACK = 256 << 10 };

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static long pages_at_home, pages_elsewhere;

static void count_home(const struct member *member, void *memory)
{
    long pages[MAX_NODES] = {0};
    count_pages(memory, member->bytes, pages);
    pthread_mutex_lock(&counting);
    for (int node = 0; node < MAX_NODES; node++)
        *(node == member->node ? &pages_at_home : &pages_elsewhere) += pages[node];
    pthread_mutex_unlock(&counting);
}

static void body(struct member *member)
{
    char *array = __builtin_alloca_with_align(member->bytes, 8 * PAGE);
    write_lines(array, member->bytes, 0);
    count_home(member, array);
    team_begin(member);
    for (long repeat = 0; repeat < member->repeats; repeat++)
        increment_lines(array, member->bytes);
    team_end(member);
    uint64_t expected = member->bytes / LINE * member->repeats;
    if (read_lines(array, member->bytes) != expected)
        fail("the array of thread %d does not hold what was written", member->index);
}

static void *nothing(void *argument)
{
    return argument;
}

/* From the first thread on, the main thread may be on a CPU of its own, as this one shows. */
static void start_first_thread(void)
{
    pthread_t id;
    if (pthread_create(&id, NULL, nothing, NULL) || pthread_join(id, NULL))
        fail("cannot start a thread");
}

int main(int count, char **words)
{
    bool is_free = count > 1 && strcmp(words[1], "free") == 0;
    bool parent = is_free || (count > 1 && strcmp(words[1], "parent") == 0);
    if (count < 2 || count > 5 || (!parent && strcmp(words[1], "own")))
        bad_arguments(USAGE);
    int threads = count > 2 ? number("THREADS", words[2], 1, 256) : 8;
    struct member equal = {
        .bytes = (count > 3 ? number("KIB", words[3], 4, 65536) : 2048) << 10,
        .repeats = count > 4 ? number("REPEATS", words[4], 1, 1000000) : 3,
        .body = body,
        .is_free = is_free,
    };
    equal.bytes = (equal.bytes + PAGE - 1) / PAGE * PAGE;
    if (is_free)
        start_first_thread();
    struct member *team = team_of(threads, equal);
    size_t stack_bytes = equal.bytes + SLACK;
    void **stacks = zeroed(threads, sizeof *stacks);
    for (int i = 0; i < threads; i++) {
        stacks[i] = fresh_memory(stack_bytes);
        if (parent)
            touch_pages(stacks[i], stack_bytes);
    }
    team_run(team, threads, stacks, stack_bytes);
    printf("threads %d\n", threads);
    printf("lines %zu\n", threads * equal.repeats * equal.bytes / LINE);
    printf("pages_at_home %ld\n", pages_at_home);
    printf("pages_elsewhere %ld\n", pages_elsewhere);
    if (!parent && pages_elsewhere)
        fail("%ld pages are not on the node of the thread that touched them", pages_elsewhere);
    return 0;
}
