/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "numaplace.h"
#include "base/recorders.h"
#include "messages.h"
#include "numakit-mark.h"
#include "settings.h"
#include "stack.h"
#include "thread.h"
#include <errno.h>
#include <string.h>

#define API __attribute__((visibility("default")))

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

static int write_label(const char *name, const char *ending)
{
    struct refusal refusal;
    int count = recorders_label(name ? name : "", ending, &refusal);
    if (refusal.error)
        warn_once(NO_RECORDERS, "phases are not recorded: %s %s", refusal.folder,
                 refusal.error == EPERM ? "belongs to another user, or others may write to it" : strerror(refusal.error));
    return count;
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
