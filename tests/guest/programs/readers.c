/* readers FILE parts|whole|rows|NODE [ROUNDS [unmarked]]     default 4
 *
 * Four threads, one on the first CPU of each of the first four nodes, read lines of a mapped file between the markers,
 * ROUNDS times or until SIGTERM. Unmarked, nothing is counted, which is faster.
 *   parts   thread i reads the i-th fifth of the file, and all read the last fifth
 *   whole   each thread reads all of the file
 *   rows    the file is 8 matrices, one after the other; thread i reads the i-th quarter of the rows of
 *           each, as threads of a language model do
 *   NODE    one thread, on this node, reads all of the file */
#define _GNU_SOURCE
#include "gate.h"
#include "lines.h"
#include "team.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#define USAGE "usage: readers FILE parts|whole|rows|NODE [ROUNDS [unmarked]]"

enum { THREADS = 4, PARTS = 5, MATRICES = 8 };

static volatile uint64_t sum;
static volatile sig_atomic_t is_over;
static bool is_marked = true;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

static void read_part(const struct member *member, size_t parts, size_t part)
{
    size_t bytes = member->bytes / parts / PAGE * PAGE;
    sum += read_lines((const char *)member->shared + part * bytes, bytes);
}

static void parts(struct member *member)
{
    read_part(member, PARTS, member->index);
    read_part(member, PARTS, PARTS - 1);
}

static void whole(struct member *member)
{
    read_part(member, 1, 0);
}

static void rows(struct member *member)
{
    for (int matrix = 0; matrix < MATRICES; matrix++)
        read_part(member, MATRICES * THREADS, matrix * THREADS + member->index);
}

static void (*work)(struct member *);

static void body(struct member *member)
{
    /* Every thread enters the pages into the page table before they are counted. */
    work(member);
    if (member->index == 0)
        wait_at_gate();
    if (is_marked)
        team_begin(member);
    for (long round = 0; round < member->repeats && !is_over; round++)
        work(member);
    if (is_marked)
        team_end(member);
}

static const struct kind {
    const char *name;
    void (*work)(struct member *);
} kinds[] = {{"parts", parts}, {"whole", whole}, {"rows", rows}};

/* Of a file that is mapped. */
static void run(const char *kind, struct member equal)
{
    int threads = THREADS, first = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, kind) == 0)
            work = kinds[i].work;
    if (!work) {
        first = number("NODE", kind, 0, MAX_NODES - 1);
        threads = 1;
        work = whole;
    }
    struct member *team = team_of(threads, equal);
    for (int i = 0; i < threads; i++) {
        team[i].cpu = first_cpu_of_node(first + i);
        team[i].node = first + i;
    }
    team_run(team, threads, NULL, 0);
}

int main(int count, char **words)
{
    if (count == 5 && strcmp(words[4], "unmarked") == 0)
        is_marked = false;
    else if (count < 3 || count > 4)
        bad_arguments(USAGE);
    int file = open(words[1], O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) != 0)
        fail("%s: %s", words[1], strerror(errno));
    void *start = mmap(NULL, about.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (start == MAP_FAILED)
        fail("cannot map %s: %s", words[1], strerror(errno));
    signal(SIGTERM, end);
    long rounds = count > 3 ? number("ROUNDS", words[3], 1, 100000) : 4;
    run(words[2], (struct member){.bytes = about.st_size, .repeats = rounds, .shared = start, .body = body});
    return 0;
}
