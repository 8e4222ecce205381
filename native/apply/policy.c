/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "policy.h"
#include "report.h"
#include "touch.h"
#include <errno.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>

enum { WEIGHTED = 6 /* since Linux 6.9 */ };

/* Borders are at the nearer page, so that of a small part at a border nothing may be left. */
size_t runs_of(const struct object *object, uintptr_t from, size_t bytes, struct run runs[FRACTIONS])
{
    size_t count = 0, page = cure.page_bytes;
    uintptr_t begin = (from + page / 2) / page * page;
    for (size_t i = 0; i < FRACTIONS; i++) {
        uintptr_t border = from + bytes / FRACTIONS * (i + 1) + bytes % FRACTIONS * (i + 1) / FRACTIONS;
        uintptr_t end = (border + page / 2) / page * page;
        /* The last page of a block is its own. */
        if (i == FRACTIONS - 1 && object->kind == OF_BLOCKS)
            end = (border + page - 1) / page * page;
        if (end <= begin)
            continue;
        if (count && runs[count - 1].node == object->node[i])
            runs[count - 1].to = end;
        else
            runs[count++] = (struct run){begin, end, object->node[i]};
        begin = end;
    }
    return count;
}

void policy_begin(void)
{
    struct nodes one = {{0}};
    uint16_t node = cure.used_count ? cure.used_node[0] : 0;
    void *page = os_allocate(cure.page_bytes, 0);
    if (!page)
        return;
    one.bits[node / 64] = 1UL << node % 64;
    int error = os_set_policy((uintptr_t)page, cure.page_bytes, MPOL_PREFERRED, &one, false);
    cure.is_refused = error == EPERM || error == ENOSYS || error == EACCES;
    if (cure.is_refused)
        atomic_store(&cure.table->header.policies_refused, 1);
    os_unmap(page, cure.page_bytes);
}

size_t policy_mappings(const struct object *object)
{
    return object->policy == AS_PARTS && object->over == OVER_BLOCK ? object->parts : 1;
}

bool policy_can_be_set(const struct object *object)
{
    enum { MOST_FAILURES = 64 };
    return !is_filtered() && atomic_load(&object->failures) < MOST_FAILURES;
}

/* Preferred, never bound: a full node must not end the program. */
static int prefer(uintptr_t from, size_t bytes, uint16_t node, bool again)
{
    struct nodes one = {{0}};
    if (node == NO_NODE)
        return again ? os_set_policy(from, bytes, MPOL_DEFAULT, NULL, false) : 0;
    one.bits[node / 64] = 1UL << node % 64;
    return os_set_policy(from, bytes, MPOL_PREFERRED, &one, again);
}

static int spread(int mode, uintptr_t from, size_t bytes, bool again)
{
    int error = os_set_policy(from, bytes, mode, &cure.used, again);
    if (error == EINVAL && mode == WEIGHTED)
        error = os_set_policy(from, bytes, MPOL_INTERLEAVE, &cure.used, again);
    return error;
}

static int set_parts(const struct object *object, uintptr_t from, size_t bytes, bool again)
{
    struct run runs[FRACTIONS];
    size_t count = runs_of(object, from, bytes, runs);
    int first_error = 0;
    for (size_t i = 0; i < count; i++) {
        int error = prefer(runs[i].from, runs[i].to - runs[i].from, runs[i].node, again);
        first_error = first_error ? first_error : error;
    }
    return first_error;
}

static int set_nodes(struct object *object, uintptr_t from, size_t bytes, uint16_t node, bool again)
{
    size_t page = cure.page_bytes;
    size_t more = object->kind == OF_BLOCKS ? page - 1 : page / 2;
    uintptr_t first = (from + page / 2) / page * page, end = (from + bytes + more) / page * page;
    if (!object_has_nodes(object) || end <= first)
        return 0;
    if (cure.is_refused)
        return touch_from_nodes(object, from, bytes, node);
    if (object->policy == AS_INTERLEAVED || object->policy == AS_WEIGHTED)
        return spread(object->policy == AS_WEIGHTED ? WEIGHTED : MPOL_INTERLEAVE, first, end - first, again);
    if (node != ANY_NODE)
        return prefer(first, end - first, node, again);
    return set_parts(object, from, bytes, again);
}

static int set_pages(const struct object *object, uintptr_t from, size_t bytes)
{
    size_t page = cure.page_bytes;
    uintptr_t first = (from + page - 1) / page * page, end = (from + bytes) / page * page;
    if (!object->pages || end <= first)
        return 0;
    return os_advise(first, end - first, object->pages == PAGES_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

bool policy_set(struct object *object, uintptr_t from, size_t bytes, uint16_t node, bool again)
{
    /* Before memory is touched. */
    int error = set_pages(object, from, bytes), error_of_nodes = set_nodes(object, from, bytes, node, again);
    error = error_of_nodes ? error_of_nodes : error;
    if (!error) {
        if (RARELY(object->failures))
            atomic_store(&object->failures, 0);
        return true;
    }
    atomic_fetch_add(&object->failures, 1);
    count_up(&object->told->refused, 1);
    atomic_store(&object->told->error, (uint64_t)error);
    return false;
}

void policy_count(struct object *object, uint64_t blocks, uint64_t bytes)
{
    count_up(&object->told->applied, blocks);
    count_up(&object->told->applied_bytes, bytes);
    if (RARELY(cure.verbose && !atomic_exchange(&object->was_said, true)))
        report_first(object, bytes);
}
