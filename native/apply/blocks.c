/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "blocks.h"
#include "large.h"
#include "policy.h"
#include "pool.h"
#include <string.h>

/* Where the thread ran when it was asked last. */
static __thread struct {
    unsigned left;
    uint16_t node;
} own_node __attribute__((tls_model("initial-exec")));

enum { USES_OF_A_NODE = 16 };

static uint16_t node_here(void)
{
    if (own_node.left-- == 0) {
        own_node.left = USES_OF_A_NODE;
        own_node.node = (uint16_t)os_node();
    }
    return own_node.node < cure.node_count ? own_node.node : NO_NODE;
}

/* The node of a whole block, or ANY_NODE. False if the block has no policy. */
static inline bool node_of_block(struct object *object, uint16_t *node)
{
    *node = ANY_NODE;
    if (object->policy == AS_NEAR) {
        *node = node_here();
        return *node != NO_NODE;
    }
    if (object->policy != AS_PARTS || object->over != OVER_BLOCKS)
        return true;
    *node = object_next_node(object);
    return *node != NO_NODE;
}

void *block_new(struct object *object, size_t size, size_t alignment, bool zeroed)
{
    uint16_t node;
    if (!space_bytes || is_filtered() || !node_of_block(object, &node))
        return NULL;
    bool has_parts = object->policy == AS_PARTS && object->over == OVER_BLOCK, is_zero = false;
    void *block;
    if (has_parts || size > POOL_MOST || alignment > POOL_MOST_ALIGNMENT)
        block = object->policy == AS_PADDED ? NULL : large_new(object, size, alignment, node, &is_zero);
    else
        block = pool_new(object, size, alignment, node);
    if (block && zeroed && !is_zero)
        memset(block, 0, size);
    return block;
}

void block_free(struct span *span, void *block)
{
    if (span->pool)
        pool_free(span, block);
    else
        large_free(span);
}

size_t block_usable(const struct span *span)
{
    return span->pool ? pool_usable(span) : span->usable;
}

bool block_fits(const struct span *span, size_t size)
{
    size_t usable = block_usable(span);
    if (span->pool)
        return size <= usable && size >= usable / 2;
    /* Parts are those of the whole. */
    return size <= usable && usable - size < cure.page_bytes;
}
