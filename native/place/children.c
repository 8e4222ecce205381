/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "children.h"
#include "base/begin.h"
#include "settings.h"
#include "thread.h"

static void save_mask(struct saved_state *saved)
{
    int only;
    saved->has_mask = settings()->active && os_mask(0, &saved->mask) == 0 && cpus_count(&saved->mask, &only) == 1 &&
                     thread_is_given(only) && os_set_mask(0, thread_initial_mask()) == 0;
}

static void save_policy(struct saved_state *saved)
{
    saved->has_policy = settings()->active && thread_has_initial_policy() && os_policy(&saved->policy) == 0 &&
                       os_set_policy(&settings()->memory) == 0;
}

void children_before(struct saved_state *saved)
{
    save_mask(saved);
    save_policy(saved);
}

void children_after(const struct saved_state *saved)
{
    if (saved->has_mask)
        os_set_mask(0, &saved->mask);
    if (saved->has_policy)
        os_set_policy(&saved->policy);
}

void exec_before(struct saved_state *saved)
{
    save_mask(saved);
    saved->has_policy = false;
    /* The launched program may be started by another one that ends: it gets the same initial state. */
    if (!library_is_of_process())
        save_policy(saved);
}

void children_begin(void)
{
    struct saved_state saved;
    children_before(&saved);
}
