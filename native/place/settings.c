/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "settings.h"
#include "base/environment.h"
#include "messages.h"
#include "base/newer.h"
#include <dlfcn.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

/* In libdl, which a program need not load. */
#pragma weak dladdr

enum { WEIGHTED_INTERLEAVE = 6 };

static struct settings present = {.lock_descriptor = -1, .inherit = true};

const struct settings *settings(void)
{
    return &present;
}

static bool read_place(const char *text)
{
    static struct cpus seen;
    int first, last;
    memset(&seen, 0, sizeof seen);
    present.count = 0;
    while (*text) {
        if (!list_next(&text, 0, MAX_CPUS, &first, &last))
            return false;
        for (int cpu = first; cpu <= last; cpu++) {
            if (!cpus_has(&seen, cpu))
                present.order[present.count++] = (short)cpu;
            cpus_add(&seen, cpu);
        }
    }
    return present.count > 0;
}

static bool read_mask(const char *text)
{
    int first, last;
    bool some = *text;
    while (*text) {
        if (!list_next(&text, 0, MAX_CPUS, &first, &last))
            return false;
        for (int cpu = first; cpu <= last; cpu++)
            cpus_add(&present.mask, cpu);
    }
    return some;
}

/* "0:0-1,4;1:2-3" */
static bool read_nodes(const char *text)
{
    int first, last, node, same;
    while (*text) {
        const char *colon = strchr(text, ':');
        if (!colon || !list_next(&text, ':', MAX_NODES, &node, &same) || text != colon)
            return false;
        for (text++; *text && *text != ';';) {
            if (!list_next(&text, ';', MAX_CPUS, &first, &last))
                return false;
            for (int cpu = first; cpu <= last; cpu++)
                present.node_of[cpu] = (short)(node + 1);
        }
        text += *text == ';';
    }
    return true;
}

static bool read_memory(const char *text)
{
    static const struct {
        const char *name;
        int mode;
    } modes[] = {
        {"bind:", MPOL_BIND},
        {"prefer:", MPOL_PREFERRED},
        {"interleave:", MPOL_INTERLEAVE},
        {"weighted:", WEIGHTED_INTERLEAVE},
    };
    if (strcmp(text, "default") == 0)
        return true;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        size_t length = strlen(modes[i].name);
        if (strncmp(text, modes[i].name, length))
            continue;
        present.memory.mode = modes[i].mode;
        int first, last;
        for (text += length; *text;) {
            if (!list_next(&text, 0, MAX_NODES, &first, &last))
                return false;
            for (int node = first; node <= last; node++)
                present.memory.nodes[node / WORD] |= 1UL << node % WORD;
        }
        return text[-1] != ':';
    }
    return false;
}

static bool read_lock_descriptor(const char *text)
{
    return number_read(text, 1 << 20, &present.lock_descriptor);
}

static bool read_verbose(const char *text)
{
    present.verbose = strcmp(text, "1") == 0;
    return true;
}

static bool read_inherit(const char *text)
{
    present.inherit = strcmp(text, "0") != 0;
    return true;
}

static bool read_ranks(const char *text)
{
    present.ranks_divide = strcmp(text, "1") == 0;
    return true;
}

static bool read_process(const char *text)
{
    return number_read(text, INT_MAX, &present.process);
}

static bool read_main(const char *text)
{
    present.main_unbound = strcmp(text, "0") == 0;
    return true;
}

/* A variable that makes OpenMP bind its threads, unless it has one of these values. */
static bool read_binding(const char *text)
{
    if (*text && strcmp(text, "none") && strcmp(text, "disabled"))
        present.runtime_binds = true;
    return true;
}

/* "false" overrides the other variables. */
static bool read_proc_bind(const char *text)
{
    present.runtime_binds = strcasecmp(text, "false") != 0;
    return true;
}

/* All variables that are read. NUMA_PLACE comes first: without it nothing else is read. */
static const struct variable VARIABLES[] = {
    {"NUMA_PLACE", "0-2,5", read_place},
    {"NUMA_MASK", "0-2,5,8", read_mask},
    {"NUMA_NODES", "0:0-1,4;1:2-3", read_nodes},
    {"NUMA_MEMORY", "interleave:0-3", read_memory},
    {"NUMA_HOLD", "100", read_lock_descriptor},
    {"NUMA_VERBOSE", "1", read_verbose},
    {"NUMA_INHERIT", "0", read_inherit},
    {"NUMA_MAIN", "0", read_main},
    {"NUMA_RANKS", "1", read_ranks},
    {"NUMA_PROCESS", "1234", read_process},
    {"OMP_PLACES", NULL, read_binding},
    {"GOMP_CPU_AFFINITY", NULL, read_binding},
    {"KMP_AFFINITY", NULL, read_binding},
    {"OMP_PROC_BIND", NULL, read_proc_bind},
};

static bool is_this_library(const char *name, size_t length)
{
    static const char ours[] = "libnumaplace.so";
    Dl_info info;
    if (length >= sizeof ours - 1 && strncmp(name + length - (sizeof ours - 1), ours, sizeof ours - 1) == 0)
        return true;
    return dladdr && dladdr(&present, &info) && info.dli_fname && strlen(info.dli_fname) == length &&
           strncmp(name, info.dli_fname, length) == 0;
}

/* Removes this library from a list of names separated by colons or blanks; returns whether any is left. */
static bool without_this_library(char *list)
{
    char *end = list;
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ": ");
        if (length && !is_this_library(at, length)) {
            if (end > list)
                *end++ = ':';
            memmove(end, at, length);
            end += length;
        }
        at += length;
        at += *at != 0;
    }
    *end = 0;
    return end > list;
}

static void leave_environment(char **environment)
{
    char **kept = environment;
    for (char **entry = environment; *entry; entry++) {
        char *preloaded = environment_value(*entry, "LD_PRELOAD");
        bool ours = preloaded && !without_this_library(preloaded);
        for (size_t i = 0; i < sizeof VARIABLES / sizeof *VARIABLES; i++)
            ours |= strncmp(VARIABLES[i].name, "NUMA_", 5) == 0 && environment_value(*entry, VARIABLES[i].name);
        if (!ours)
            *kept++ = *entry;
    }
    *kept = NULL;
}

void settings_read(char **environment)
{
    /* A program with more privileges than its caller ignores the caller's settings. */
    if (!environment || !environment_find(environment, VARIABLES[0].name) || getauxval(AT_SECURE) ||
        !threads_are_there())
        return;
    const char *value;
    const struct variable *end = VARIABLES + sizeof VARIABLES / sizeof *VARIABLES;
    const struct variable *wrong = environment_read(environment, VARIABLES, end, &value);
    if (wrong) {
        warn_once(BAD_SETTING, "%s is '%.100s'; write it like %s=%s. Threads are not placed", wrong->name, value, wrong->name,
                  wrong->example);
        return;
    }
    int first;
    if (cpus_count(&present.mask, &first) == 0)
        for (int i = 0; i < present.count; i++)
            cpus_add(&present.mask, present.order[i]);
    if (!present.inherit)
        leave_environment(environment);
    present.active = true;
}

void settings_leave(char **environment)
{
    leave_environment(environment);
    present.active = false;
}

bool settings_narrow(const struct cpus *mask)
{
    int count = 0;
    for (int i = 0; i < present.count; i++)
        count += cpus_has(mask, present.order[i]);
    if (count == 0)
        return false;
    int kept = 0;
    for (int i = 0; i < present.count; i++)
        if (cpus_has(mask, present.order[i]))
            present.order[kept++] = present.order[i];
    present.count = kept;
    present.mask = *mask;
    return true;
}

int node_of_cpu(int cpu)
{
    return cpu >= 0 && cpu < MAX_CPUS ? present.node_of[cpu] - 1 : -1;
}

static atomic_bool without_memory[MAX_NODES];

bool node_has_memory(int node)
{
    return node >= 0 && node < MAX_NODES &&
           !atomic_load_explicit(&without_memory[node], memory_order_relaxed);
}

void node_mark_without_memory(int node)
{
    atomic_store(&without_memory[node], true);
}

int node_of_cpus(const struct cpus *cpus)
{
    int node = -1;
    for (int at = 0; at < (int)(MAX_CPUS / WORD); at++) {
        for (unsigned long word = cpus->words[at]; word; word &= word - 1) {
            int found = node_of_cpu(at * (int)WORD + __builtin_ctzl(word));
            if (found < 0 || (node >= 0 && found != node))
                return -1;
            node = found;
        }
    }
    return node;
}
