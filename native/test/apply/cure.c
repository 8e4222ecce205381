/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* cure LIBRARIES PROGRAM CASE [WORD]     makes the table of a case, as `numa run --apply` does, runs PROGRAM CASE with the libraries preloaded,
 * and checks what the library has counted. `cure list` lists the cases. Sites are found by a run with the spy. Words: `refused`: mbind
 * is refused; `aside`: the library is to do nothing; `damaged:N`: the table has damage number N. */
#define _GNU_SOURCE
#include "apply/table.h"
#include "elf.h"
#include "work.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { TOKEN = 0xabc, CHAINS = 1 << 20, MUCH = 1 << 30 };

struct wish {
    const char *file, *variable;                /* of a variable, */
    size_t size;                                /* or of the block by which a site is found */
    int depth;                                  /* of the chain, 0: 1 */
    int policy, pages, over, range;             /* sizes of blocks may differ by so much */
    uint64_t count;
    uint64_t least_applied, most_applied;       /* that the library has to count */
    bool is_missed;                             /* other sizes must be counted */
};

struct plan {
    const char *name;
    struct wish wishes[5];
    uint64_t overridden, exhausted, filtered, deep; /* at least */
};

#define SITE(n) .size = n, .policy = AS_PARTS
static const struct plan PLANS[] = {
    {"variables", {{.variable = "table", .policy = AS_PARTS, .least_applied = 1, .most_applied = 1},
                   {.variable = "words", .policy = AS_PARTS, .least_applied = 1, .most_applied = 1}}, .exhausted = 0},
    {"blocks", {{SITE(LARGE), .least_applied = 42, .most_applied = 42, .is_missed = true}, {SITE(LARGE + 4), .least_applied = 20, .most_applied = 20}}, .exhausted = 0},
    {"reallocated", {{SITE(LARGE), .least_applied = 5, .most_applied = 40}}, .exhausted = 0},
    {"grown", {{SITE(LARGE), .least_applied = 2, .most_applied = 2}}, .exhausted = 0},
    {"aligned", {{SITE(LARGE), .least_applied = 10, .most_applied = 10}, {SITE(LARGE + 2), .least_applied = 10, .most_applied = 10}}, .exhausted = 0},
    {"mappings", {{SITE(LARGE), .least_applied = 2002, .most_applied = 2003}}, .exhausted = 0},
    {"chains", {{SITE(LARGE), .depth = 2, .least_applied = 40, .most_applied = 40}}, .exhausted = 0},
    {"interleaved", {{.size = LARGE, .policy = AS_WEIGHTED, .least_applied = 1, .most_applied = 1}}, .exhausted = 0},
    {"million", {{SITE(SMALL_BLOCK), .over = OVER_BLOCKS, .count = 3000, .least_applied = 1000000, .most_applied = 3000000}}, .exhausted = 0},
    {"many_large", {{SITE(70001), .least_applied = 1000, .most_applied = 40000}}, .exhausted = 1},
    {"padded", {{.size = SMALL_BLOCK, .policy = AS_PADDED, .least_applied = 1000, .most_applied = 1000}, {.size = SMALL_BLOCK + 2, .policy = AS_PADDED, .least_applied = 1, .most_applied = 1}}, .exhausted = 0},
    {"handed_over", {{.size = SMALL_BLOCK, .policy = AS_NEAR, .least_applied = 400000, .most_applied = 400000}}, .exhausted = 0},
    {"forks", {{SITE(LARGE), .least_applied = 15012, .most_applied = 15012}, {.size = SMALL_BLOCK, .policy = AS_PADDED, .least_applied = 15000, .most_applied = 15000}}, .exhausted = 0},
    {"executes", {{SITE(LARGE), .least_applied = 43, .most_applied = 43}, {SITE(LARGE + 4), .least_applied = 20, .most_applied = 20}}, .exhausted = 0},
    {"overridden", {{SITE(LARGE), .pages = PAGES_SMALL, .least_applied = 1, .most_applied = 1}}, .overridden = 3},
    {"filters", {{SITE(LARGE), .least_applied = 1, .most_applied = 1}, {.size = SMALL_BLOCK, .policy = AS_NEAR, .least_applied = 1000, .most_applied = 1000}, {.size = SMALL_BLOCK + 2, .policy = AS_PADDED}, {.size = SMALL_BLOCK + 4, .policy = AS_NEAR}}, .filtered = 1},
    {"closed", {{SITE(LARGE), .least_applied = 42, .most_applied = 42, .is_missed = true}, {SITE(LARGE + 4), .least_applied = 20, .most_applied = 20}}, .exhausted = 0},
    {"pieces", {{SITE(LARGE), .least_applied = 65, .most_applied = 65}}, .exhausted = 0},
    {"torn", {{SITE(LARGE), .least_applied = 8, .most_applied = 8}}, .exhausted = 0},
    {"own_policies", {{SITE(LARGE), .least_applied = 42, .most_applied = 42, .is_missed = true}, {SITE(LARGE + 4), .least_applied = 20, .most_applied = 20}}, .exhausted = 0},
    {"traced", {{SITE(LARGE), .least_applied = 42, .most_applied = 42, .is_missed = true}, {SITE(LARGE + 4), .least_applied = 20, .most_applied = 20}}, .exhausted = 0},
    {"touched", {{SITE(LARGE), .least_applied = 1, .most_applied = 1}, {.variable = "words", .policy = AS_PARTS, .least_applied = 1, .most_applied = 1}}, .exhausted = 0},
    {"plugin", {{SITE(LARGE), .least_applied = 2, .most_applied = 2}, {.file = "./plugin.so", .variable = "late", .policy = AS_PARTS, .least_applied = 2, .most_applied = 2}}, .exhausted = 0},
    {"copies", {{SITE(LARGE), .least_applied = 6, .most_applied = 6}, {.file = "./plugin.so", .variable = "late", .policy = AS_PARTS, .least_applied = 6, .most_applied = 6}}, .exhausted = 0},
    {"deep_binding", {{SITE(LARGE), .least_applied = 1, .most_applied = 1}}, .deep = 1},
    {"random", {{.size = SMALL_BLOCK, .range = 40, .policy = AS_NEAR, .least_applied = 1000, .most_applied = MUCH}, {SITE(LARGE), .least_applied = 10, .most_applied = MUCH}}, .exhausted = 0},
    {"cpp", {{SITE(LARGE), .depth = 2, .least_applied = 10, .most_applied = 10}, {SITE(800001), .depth = 3, .least_applied = 1, .most_applied = 1}}, .exhausted = 0},
};

static char chains[CHAINS];
static char program[4096];
static const char *own_case;
static struct apply_table *table;
static const char *module_path[MAX_MODULES];

static void run(const char *libraries, const char *variable, const char *value, void (*prepare)(void), int *status)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_PRELOAD", libraries, 1);
        setenv(variable, value, 1);
        if (prepare)
            prepare();
        execl(program, program, own_case, (char *)NULL);
        _exit(98);
    }
    CHECK(waitpid(child, status, 0) == child);
}

static uint32_t module_of(const char *path)
{
    uint64_t i = 0;
    path = strcmp(path, ".") == 0 ? program : path;
    while (i < table->header.module_count && strcmp(module_path[i], path) != 0)
        i++;
    if (i == table->header.module_count) {
        table->header.module_count++;
        module_path[i] = strdup(path);
        table->module[i].build_id_bytes = elf_build_id(path, table->module[i].build_id);
    }
    return (uint32_t)i;
}

/* The first allocation of this size. */
static void find_site(const struct wish *wish, struct apply_object *object)
{
    char start[32], path[1024];
    snprintf(start, sizeof start, "\n%zu ", wish->size);
    const char *at = strstr(chains, start);
    if (!at)
        dprintf(2, "no block of %zu bytes\n", wish->size);
    CHECK(at);
    at += strlen(start);
    object->chain_count = (uint64_t)(wish->depth ? wish->depth : 1);
    for (uint64_t i = 0; i < object->chain_count; i++) {
        int length;
        CHECK(sscanf(at, "%1000s%n", path, &length) == 1);
        char *plus = strrchr(path, '+');
        CHECK(plus);
        *plus = 0;
        object->chain[i] = strtoul(plus + 1, NULL, 16);
        object->chain_module[i] = module_of(path);
        at += length;
        at += *at == ' ';
    }
}

/* Where the spy cannot be: the library must not come to look at a block. */
static void take_any_site(struct apply_object *object)
{
    object->chain_count = 1;
    object->chain[0] = 1;
    object->chain_module[0] = module_of(".");
}

static void fulfil(const struct wish *wish, struct apply_object *object)
{
    object->policy = (uint8_t)wish->policy;
    object->pages = (uint8_t)wish->pages;
    object->over = (uint8_t)wish->over;
    object->count = wish->count;
    for (int i = 0; i < FRACTIONS; i++)
        object->node[i] = wish->over == OVER_BLOCKS || i / (FRACTIONS / 4) % 2 == 0 ? 0 : NO_NODE;
    object->kind = wish->variable ? OF_VARIABLE : OF_BLOCKS;
    if (wish->variable) {
        object->module = module_of(wish->file ? wish->file : ".");
        CHECK(elf_variable(module_path[object->module], wish->variable, &object->address, &object->bytes));
        return;
    }
    object->smallest = wish->size - (size_t)wish->range;
    object->largest = wish->size + (size_t)wish->range;
    if (*chains)
        find_site(wish, object);
    else
        take_any_site(object);
}

static void damage(int number)
{
    struct apply_header *header = &table->header;
    struct apply_object *object = &table->object[0];
    switch (number) {
    case 1: header->magic++; break;
    case 2: header->version = 2; break;
    case 3: header->token++; break;
    case 4: header->object_count = MAX_OBJECTS + 1; break;
    case 5: header->module_count = UINT64_MAX; break;
    case 6: header->node_count = MAX_NODES + 1; break;
    case 7: object->chain_count = MAX_CHAIN + 1; break;
    case 8: object->chain_module[0] = 999; break;
    case 9: object->policy = 77; break;
    case 10: object->kind = 9; break;
    case 11: object->smallest = object->largest + 1; break;
    case 12: table->module[0].build_id_bytes = BUILD_ID_BYTES + 1; break;
    case 13: table->module[0].build_id[0]++; break;
    case 14: object->over = OVER_BLOCKS; object->count = 0; break;
    case 15: object->pages = 200; break;
    case 16: table->module[0].build_id_bytes = 0; break;
    default: CHECK(!"no such damage");
    }
}

/* As many as there can be: the same sites again and again with other sizes. */
static void crowd(void)
{
    for (uint64_t i = table->header.object_count; i < MAX_OBJECTS; i++) {
        table->object[i] = table->object[0];
        table->object[i].chain[0] += 1 + i;
        table->object[i].smallest = 64 + i;
    }
    table->header.object_count = MAX_OBJECTS;
}

static void refuse(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_move_pages, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog all_of_it = {sizeof filter / sizeof *filter, filter};
    setenv("REFUSED", "1", 1);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all_of_it) == 0);
}

static void without_policies(void)
{
    setenv("REFUSED", "1", 1);
}

static bool is_right(const struct plan *plan, bool refused, bool nothing)
{
    const struct apply_header *header = &table->header;
    bool right = header->processes > 0 || nothing;
    for (int i = 0; i < 4 && plan->wishes[i].policy; i++) {
        const struct wish *wish = &plan->wishes[i];
        const struct apply_object *object = &table->object[i];
        uint64_t pages = 0;
        for (int node = 0; node < COUNTED_NODES; node++)
            pages += object->pages_on[node];
        fprintf(stderr, "object %d: %lu applied, %lu bytes, %lu refused (%lu), %lu of other sizes, %lu touched, %lu pages\n", i,
                object->applied, object->applied_bytes, object->refused, object->error, object->other_size, object->touched, pages);
        if (nothing) {
            right &= i > 0 || object->applied == 0;
            continue;
        }
        right &= object->applied >= wish->least_applied && object->applied <= wish->most_applied && object->refused == 0;
        right &= !wish->is_missed || object->other_size > 0;
        right &= refused ? wish->policy == AS_PADDED || object->touched > 0 : object->touched == 0;
        right &= refused || !wish->least_applied || plan->filtered || pages > 0;
    }
    fprintf(stderr, "%lu processes, %lu aside, %lu overridden, %lu exhausted, refused %lu\n", header->processes, header->stepped_aside,
            header->overridden, header->mappings_exhausted, header->policies_refused);
    if (!nothing)
        right &= header->overridden >= plan->overridden && (header->mappings_exhausted > 0) == (plan->exhausted > 0) &&
                 header->stepped_aside == 0 && header->policies_refused == refused && header->filtered == plan->filtered &&
                 header->deep_bindings == plan->deep;
    return right;
}

static const struct plan *plan_of(const char *name)
{
    for (size_t i = 0; i < sizeof PLANS / sizeof *PLANS; i++)
        if (strcmp(PLANS[i].name, name) == 0)
            return &PLANS[i];
    dprintf(2, "no case %s\n", name);
    exit(97);
}

static void spy(void)
{
    char number[16];
    int status, file = memfd_create("spy", 0);
    snprintf(number, sizeof number, "%d", file);
    CHECK(write(file, "\n", 1) == 1);
    run(getenv("SPY_LIBRARIES"), "SPY", number, NULL, &status);
    CHECK(status == 0);
    CHECK(pread(file, chains, sizeof chains - 1, 0) > 0);
    close(file);
}

int main(int count, char **words)
{
    char value[64];
    int status;
    for (size_t i = 0; count == 2 && i < sizeof PLANS / sizeof *PLANS; i++)
        puts(PLANS[i].name);
    if (count < 4)
        return count != 2;
    const char *word = count > 4 ? words[4] : "";
    bool refused = strcmp(word, "refused") == 0, damaged = strncmp(word, "damaged:", 8) == 0;
    bool aside = strcmp(word, "aside") == 0, nothing = damaged || aside;
    CHECK(realpath(words[2], program));
    own_case = words[3];
    const struct plan *plan = plan_of(own_case);
    if (!aside)
        spy();
    int file = memfd_create("cure", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, sizeof *table) == 0);
    table = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(table != MAP_FAILED);
    table->header.magic = APPLY_MAGIC;
    table->header.version = APPLY_VERSION;
    table->header.token = TOKEN;
    table->header.node_count = 1;
    table->header.verbose = strcmp(word, "verbose") == 0;
    table->node[0] = (struct apply_node){(uint32_t)sched_getcpu(), 1};
    for (; plan->wishes[table->header.object_count].policy; table->header.object_count++)
        fulfil(&plan->wishes[table->header.object_count], &table->object[table->header.object_count]);
    if (damaged)
        damage(atoi(word + 8));
    if (strcmp(word, "crowded") == 0)
        crowd();
    snprintf(value, sizeof value, "/proc/%d/fd/%d:%x", (int)getpid(), file, TOKEN);
    run(words[1], "NUMA_APPLY", value, refused ? refuse : nothing ? without_policies : NULL, &status);
    fprintf(stderr, "status %#x\n", (unsigned)status);
    return status || !is_right(plan, refused, nothing) || (aside && table->header.stepped_aside == 0);
}
