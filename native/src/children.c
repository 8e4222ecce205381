/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "children.h"
#include "settings.h"
#include "thread.h"

static void keep_mask(struct kept *kept)
{
    int only;
    kept->has_mask = settings()->active && os_mask(0, &kept->mask) == 0 && cpus_count(&kept->mask, &only) == 1 &&
                     thread_is_given(only) && os_set_mask(0, thread_mask_of_start()) == 0;
}

static void keep_policy(struct kept *kept)
{
    kept->has_policy = settings()->active && thread_has_policy_of_start() && os_policy(&kept->policy) == 0 &&
                       os_set_policy(&settings()->memory) == 0;
}

void children_before(struct kept *kept)
{
    keep_mask(kept);
    keep_policy(kept);
}

void children_after(const struct kept *kept)
{
    if (kept->has_mask)
        os_set_mask(0, &kept->mask);
    if (kept->has_policy)
        os_set_policy(&kept->policy);
}

void exec_before(struct kept *kept)
{
    keep_mask(kept);
    kept->has_policy = false;
    /* The program that is launched may be started by another one that goes: it begins the same way. */
    if (!thread_is_of_process())
        keep_policy(kept);
}

void children_begin(void)
{
    struct kept kept;
    children_before(&kept);
}
