/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ranks.h"
#include "base/environment.h"
#include "messages.h"
#include "settings.h"
#include "stack.h"
#include <stdio.h>
#include <string.h>

/* A process's rank on this machine, and the number of ranks. */
static const struct {
    const char *rank, *count;
} LAUNCHERS[] = {
    {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}, /* Open MPI */
    {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},                       /* MPICH, Intel MPI */
};

enum { MAX_RANKS = 1 << 20, CPU_BYTES = sizeof "8191,", NAME_BYTES = 16 };

/* New entries of the environment. */
static char place_entry[NAME_BYTES + MAX_CPUS * CPU_BYTES];
static char mask_entry[NAME_BYTES + MAX_CPUS * CPU_BYTES];
static char omp_entry[NAME_BYTES + MAX_CPUS * (CPU_BYTES + 2)];
static char divided[] = "NUMA_RANKS=0";
static char no_binding[] = "OMP_PROC_BIND=false";
static char no_spinning[] = "OMP_WAIT_POLICY=PASSIVE";

static bool find_rank(char **environment, int *rank, int *count)
{
    for (size_t i = 0; i < sizeof LAUNCHERS / sizeof *LAUNCHERS; i++) {
        const char *own = environment_find(environment, LAUNCHERS[i].rank);
        const char *all = environment_find(environment, LAUNCHERS[i].count);
        if (own && all)
            return number_read(own, MAX_RANKS, rank) && number_read(all, MAX_RANKS, count) && *rank < *count;
    }
    return false;
}

/* "NAME=0-2,5", runs as ranges. */
static void write_list(char *entry, const char *name, const short *cpus, int count)
{
    char *end = entry + sprintf(entry, "%s=", name);
    for (int at = 0; at < count; at++) {
        int first = cpus[at];
        while (at + 1 < count && cpus[at + 1] == cpus[at] + 1)
            at++;
        const char *comma = end[-1] == '=' ? "" : ",";
        end += first == cpus[at] ? sprintf(end, "%s%d", comma, first)
                                 : sprintf(end, "%s%d-%d", comma, first, cpus[at]);
    }
}

/* "OMP_PLACES={0},{1}" of the settings' places. */
static const char *write_places(void)
{
    int name = sprintf(omp_entry, "OMP_PLACES=");
    char *end = omp_entry + name;
    for (int at = 0; at < settings()->count; at++)
        end += sprintf(end, "%s{%d}", at ? "," : "", settings()->order[at]);
    return omp_entry + name;
}

static void write_environment(char **environment, bool has_our_places)
{
    static short rising[MAX_CPUS];
    int count = 0;
    for (int cpu = 0; cpu < MAX_CPUS; cpu++)
        if (cpus_has(&settings()->mask, cpu))
            rising[count++] = (short)cpu;
    write_list(mask_entry, "NUMA_MASK", rising, count);
    write_list(place_entry, "NUMA_PLACE", settings()->order, settings()->count);
    environment_replace(environment, "NUMA_MASK", mask_entry);
    environment_replace(environment, "NUMA_PLACE", place_entry);
    if (has_our_places) {
        write_places();
        environment_replace(environment, "OMP_PLACES", omp_entry);
    }
}

/* The places of this rank. */
static struct cpus part(int rank, int count)
{
    struct cpus share = {0};
    long places = settings()->count;
    for (long at = places * rank / count; at < places * (rank + 1) / count; at++)
        cpus_add(&share, settings()->order[at]);
    return share;
}

/* Moves the process to the first place of its share for now, with the pages that it has touched. */
static int move(const struct cpus *share, int first)
{
    struct cpus one = {0};
    cpus_add(&one, first);
    int error = os_set_mask(0, &one);
    if (error == 0)
        error = os_set_mask(0, share);
    if (error == 0)
        stack_move(node_of_cpu(first), 0, STACK_USED);
    return error;
}

/* Turns off binding: all ranks would bind to the same cores. */
static void do_without(char **environment, int rank, int count)
{
    if (rank == 0)
        warn_once(TOO_MANY_RANKS, "%d ranks on %d CPUs share all of them: their threads are not placed", count,
                 settings()->count);
    settings_leave(environment);
    environment_replace(environment, "OMP_PROC_BIND", no_binding);
    const char *waiting = environment_find(environment, "OMP_WAIT_POLICY");
    if (waiting && strcmp(waiting, "ACTIVE") == 0)
        environment_replace(environment, "OMP_WAIT_POLICY", no_spinning);
}

bool ranks_begin(char **environment)
{
    struct cpus mask, share;
    int rank, count;
    if (!settings()->ranks_divide || !find_rank(environment, &rank, &count))
        return false;
    environment_replace(environment, "NUMA_RANKS", divided);
    if (os_mask(0, &mask))
        return true;
    bool is_free = memcmp(&mask, &settings()->mask, sizeof mask) == 0;
    if (is_free && count > settings()->count) {
        do_without(environment, rank, count);
        return true;
    }
    share = is_free ? part(rank, count) : mask;
    int first = (int)((long)settings()->count * rank / count);
    int error = is_free ? move(&share, settings()->order[first]) : 0;
    if (error) {
        warn_once(CANNOT_BIND, "cannot give rank %d its CPUs: %s", rank, strerror(error));
        return true;
    }
    const char *places = environment_find(environment, "OMP_PLACES");
    bool has_our_places = places && strcmp(places, write_places()) == 0;
    if (settings_narrow(&share))
        write_environment(environment, has_our_places);
    print_if_verbose("process %d: rank %d of %d here has CPUs %s", (int)os_process(), rank, count,
                   environment_find(environment, "NUMA_PLACE"));
    return true;
}
