/* private [THREADS [KIB [REPEATS]]]     default 8 2048 3
 *
 * One bound thread for each CPU sweeps memory of its own on its node, between the markers. Next to
 * nothing may be remote. The memory is bound to the node: where the kernel finds no page at once
 * for a first touch, it takes one from another node. */
#define _GNU_SOURCE
#include "lines.h"
#include "team.h"

#define USAGE "usage: private [THREADS [KIB [REPEATS]]]"

static void body(struct member *member)
{
    long pages[MAX_NODES] = {0};
    void *memory = fresh_memory(member->bytes);
    place_memory(memory, member->bytes, MPOL_BIND, member->node, 0);
    write_lines(memory, member->bytes, 0);
    count_pages(memory, member->bytes, pages);
    if (pages[member->node] != (long)(member->bytes / PAGE)) {
        print_pages("node", pages);
        fail("%ld of %zu pages of thread %d are on its node %d", pages[member->node],
             member->bytes / PAGE, member->index, member->node);
    }
    team_begin(member);
    for (long repeat = 0; repeat < member->repeats; repeat++)
        increment_lines(memory, member->bytes);
    team_end(member);
    if (read_lines(memory, member->bytes) != member->bytes / LINE * member->repeats)
        fail("the memory of thread %d does not hold what was written", member->index);
}

int main(int count, char **words)
{
    if (count > 4)
        bad_arguments(USAGE);
    int threads = count > 1 ? number("THREADS", words[1], 1, 256) : 8;
    struct member equal = {
        .bytes = (count > 2 ? number("KIB", words[2], 4, 65536) : 2048) << 10,
        .repeats = count > 3 ? number("REPEATS", words[3], 1, 1000000) : 3,
        .body = body,
    };
    equal.bytes = (equal.bytes + PAGE - 1) / PAGE * PAGE;
    team_run(team_of(threads, equal), threads, NULL, 0);
    printf("threads %d\n", threads);
    printf("lines %zu\n", threads * equal.repeats * equal.bytes / LINE);
    return 0;
}
