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

enum { LONGEST_LABEL = 200 };

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
    int had = thread_place()->core, core = had == NO_CORE ? cores_take() : had;
    int error = core == NO_CORE ? EAGAIN : thread_bind(core);
    if (error && had == NO_CORE)
        cores_release(core);
    return error;
}

/* Where recorders of this user listen: as they choose it themselves. */
static int tell_recorders(const char *line, size_t length)
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
    int error = os_tell_fifos(path, line, length, &count);
    /* No folder: nothing records. */
    if (error && error != ENOENT)
        say_once(NO_RECORDERS, "phases are not recorded: %s %s", path,
                 error == EPERM ? "belongs to another user, or others may write to it" : strerror(error));
    return count;
}

static int tell(const char *name, const char *ending)
{
    char line[LONGEST_LABEL + 32];
    int length = snprintf(line, sizeof line, "label %.*s%s\n", LONGEST_LABEL, name ? name : "", ending);
    for (int i = 0; i + 1 < length; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    return tell_recorders(line, (size_t)length);
}

API int numaplace_phase_begin(const char *name)
{
    int told = tell(name, "");
    NUMAKIT_MARK_BEGIN();
    return told;
}

API int numaplace_phase_end(const char *name)
{
    NUMAKIT_MARK_END();
    return tell(name, " end");
}
