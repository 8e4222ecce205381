/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "numaplace.h"
#include "messages.h"
#include "numakit-mark.h"
#include "settings.h"
#include "stack.h"
#include "thread.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { MAX_LABEL = 200 };

API int numaplace_core(void)
{
    struct cpus mask;
    int only;
    return os_mask(0, &mask) == 0 && cpus_count(&mask, &only) == 1 ? only : -1;
}

API int numaplace_node(void)
{
    return node_of_cpu(os_cpu());
}

API const char *numaplace_version(void)
{
    return NUMAPLACE_VERSION;
}

API int numaplace_rebind(void)
{
    if (!settings()->active)
        return ENOTSUP;
    int old = thread_place()->core, core = old == NO_CORE ? cores_take() : old;
    int error = core == NO_CORE ? EAGAIN : thread_bind(core);
    if (error && old == NO_CORE)
        cores_release(core);
    return error;
}

/* Writes to the FIFOs of this user's recorders, in the directory that recorders choose. */
static int write_to_recorders(const char *line, size_t length)
{
    const char *folder = getenv("XDG_RUNTIME_DIR"), *temporary = getenv("TMPDIR");
    char path[4096];
    int count;
    if (folder && *folder == '/')
        snprintf(path, sizeof path, "%s/numakit", folder);
    else if (os_user() == 0)
        snprintf(path, sizeof path, "/run/numakit");
    else
        snprintf(path, sizeof path, "%s/numakit-%u", temporary && *temporary ? temporary : "/tmp",
                 (unsigned)os_user());
    int error = os_write_fifos(path, line, length, &count);
    /* No directory means that nothing records. */
    if (error && error != ENOENT)
        warn_once(NO_RECORDERS, "phases are not recorded: %s %s", path,
                 error == EPERM ? "belongs to another user, or others may write to it" : strerror(error));
    return count;
}

static int write_label(const char *name, const char *ending)
{
    char line[MAX_LABEL + 32];
    int length = snprintf(line, sizeof line, "label %.*s%s\n", MAX_LABEL, name ? name : "", ending);
    for (int i = 0; i + 1 < length; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    return write_to_recorders(line, (size_t)length);
}

API int numaplace_phase_begin(const char *name)
{
    int count = write_label(name, "");
    NUMAKIT_MARK_BEGIN();
    return count;
}

API int numaplace_phase_end(const char *name)
{
    NUMAKIT_MARK_END();
    return write_label(name, " end");
}
