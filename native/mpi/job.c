/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "job.h"
#include "base/environment.h"
#include "os.h"
#include <stdbool.h>
#include <string.h>

/* MPICH's launcher tells ranks nothing about their job: it is their ancestor, where scripts start them. 0 if there is none. */
static uint64_t proxy(void)
{
    enum { MOST = 16 };
    char name[16];
    pid_t process = os_parent();
    for (int i = 0; i < MOST && process > 1; i++) {
        pid_t parent = os_parent_of(process, name);
        if (parent && strcmp(name, "hydra_pmi_proxy") == 0)
            return (uint64_t)process;
        process = parent;
    }
    return 0;
}

static uint64_t mixed(uint64_t hash, unsigned char byte)
{
    return (hash ^ byte) * UINT64_C(0x100000001b3);
}

/* A rank may have variables of a launcher around its own: all of them are taken, since those of its own are among them. */
uint64_t job_of(char **environment)
{
    static const char *const NAMES[] = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_KVS", "SLURM_JOB_ID",
                                        "SLURM_STEP_ID"};
    uint64_t hash = 0, own = proxy();
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const char *text = environment_find(environment, NAMES[i]);
        for (; text && *text; text++)
            hash = mixed(hash, (unsigned char)*text);
    }
    if (hash == 0 && own == 0)
        return (uint64_t)os_parent();
    for (; own; own >>= 8)
        hash = mixed(hash, (unsigned char)own);
    return hash ? hash : 1;
}
