/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "cure.h"
#include "base/environment.h"
#include <string.h>

struct cure cure;

/* Blocks that are interleaved, or have other pages, whatever their size. */
enum { LEAST_PAGES = 16 };
/* Blocks of parts over blocks, such as rows of a matrix, may be larger or smaller by this factor. */
enum { SCALE = 4 };

static bool is_module_right(const struct apply_module *module)
{
    return module->build_id_bytes > 0 && module->build_id_bytes <= BUILD_ID_BYTES;
}

static bool is_variable_right(const struct apply_object *object)
{
    return object->module < cure.module_count && object->bytes > 0 && object->bytes < UINT64_C(1) << 56 &&
           object->address < UINT64_C(1) << 56;
}

static bool are_blocks_right(const struct apply_object *object)
{
    if (object->chain_count == 0 || object->chain_count > MAX_CHAIN || object->smallest > object->largest)
        return false;
    for (uint64_t i = 0; i < object->chain_count; i++)
        if (object->chain_module[i] >= cure.module_count)
            return false;
    return object->over != OVER_BLOCKS || object->count > 0;
}

static bool is_object_right(const struct apply_object *object)
{
    bool is_kind = object->kind == OF_VARIABLE ? is_variable_right(object)
                                               : object->kind == OF_BLOCKS && are_blocks_right(object);
    return is_kind && object->policy >= AS_PARTS && object->policy <= AS_UNCHANGED && object->pages <= PAGES_SMALL &&
           object->over <= OVER_BLOCKS;
}

static unsigned parts_of(const struct object *object)
{
    unsigned parts = 1;
    for (int i = 1; i < FRACTIONS; i++)
        parts += object->node[i] != object->node[i - 1];
    return parts;
}

/* Of which sizes blocks get the policy. Parts are fractions, so they hold for other sizes too, if each has a page. */
static void scale(struct object *object)
{
    size_t parts = object->parts * cure.page_bytes;
    object->least = SIZE_MAX;
    if (object->policy == AS_PARTS && object->over == OVER_BLOCK) {
        object->least = object->smallest = parts;
        object->largest = SIZE_MAX / 2;
    } else if (object->policy == AS_PARTS) {
        object->smallest /= SCALE;
        object->largest = object->largest < SIZE_MAX / SCALE ? object->largest * SCALE : SIZE_MAX / 2;
    } else if (object->policy == AS_INTERLEAVED || object->policy == AS_WEIGHTED || object->pages) {
        object->least = LEAST_PAGES * cure.page_bytes;
    }
    /* What cannot be allocated is refused by the allocator, as without the library. */
    if (object->largest > SIZE_MAX / 2)
        object->largest = SIZE_MAX / 2;
}

static void take_object(struct object *object, struct apply_object *told, const struct apply_object *copy)
{
    object->told = told;
    object->kind = copy->kind;
    object->policy = copy->policy;
    object->pages = copy->pages;
    object->over = copy->over;
    object->module = copy->module;
    object->address = copy->address;
    object->bytes = copy->bytes;
    object->smallest = copy->smallest;
    object->largest = copy->largest;
    object->count = copy->count;
    object->chain_count = copy->kind == OF_BLOCKS ? (uint32_t)copy->chain_count : 0;
    for (uint32_t i = 0; i < object->chain_count; i++) {
        object->chain[i] = copy->chain[i];
        object->chain_module[i] = (uint32_t)copy->chain_module[i];
    }
    /* A node that the run does not have gets no policy. */
    for (int i = 0; i < FRACTIONS; i++)
        object->node[i] = copy->node[i] < cure.node_count ? copy->node[i] : NO_NODE;
    object->parts = parts_of(object);
    scale(object);
}

static void take_nodes(const struct apply_table *table)
{
    for (size_t i = 0; i < cure.node_count; i++) {
        struct apply_node node = table->node[i];
        cure.cpu[i] = node.cpu;
        if (node.is_used != 1 || node.cpu >= 8 * sizeof(struct cpus))
            continue;
        cure.used.bits[i / 64] |= 1UL << i % 64;
        cure.used_node[cure.used_count++] = (uint16_t)i;
    }
}

static void take_modules(struct apply_table *table)
{
    for (size_t i = 0; i < cure.module_count; i++) {
        struct module *module = &cure.module[i];
        struct apply_module copy;
        memcpy(&copy, &table->module[i], sizeof copy);
        module->told = &table->module[i];
        if (!is_module_right(&copy))
            continue;
        memcpy(module->build_id, copy.build_id, copy.build_id_bytes);
        module->build_id_bytes = copy.build_id_bytes;
    }
}

/* Objects that are damaged are left alone. */
static void take_objects(struct apply_table *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct apply_object copy;
        memcpy(&copy, &table->object[i], sizeof copy);
        if (!is_object_right(&copy))
            continue;
        struct object *object = &cure.object[cure.object_count++];
        object->number = (uint32_t)i + 1;
        take_object(object, &table->object[i], &copy);
    }
}

/* The first process has the filters that the launcher had; one with more has set them, and may be ended for a call of ours. */
static bool has_more_filters(struct apply_header *header)
{
    uint64_t own = os_seccomp_filters() + 1, first = 0;
    if (atomic_compare_exchange_strong(&header->filters, &first, own))
        return false;
    return own > first;
}

bool cure_begin(char **environment)
{
    struct observer_file file;
    if (!environment_map(environment, "NUMA_APPLY", sizeof(struct apply_table), 0, &file))
        return false;
    struct apply_table *table = file.memory;
    struct apply_header *header = &table->header;
    uint64_t objects = header->object_count;
    cure.module_count = header->module_count;
    cure.node_count = header->node_count;
    bool is_right = header->magic == APPLY_MAGIC && header->version == APPLY_VERSION && header->token == file.token &&
                    objects <= MAX_OBJECTS && cure.module_count <= MAX_MODULES && cure.node_count <= MAX_NODES;
    if (!is_right) {
        os_unmap(file.memory, file.bytes);
        return false;
    }
    count_up(&header->processes, 1);
    if (has_more_filters(header)) {
        count_up(&header->stepped_aside, 1);
        os_unmap(file.memory, file.bytes);
        return false;
    }
    cure.page_bytes = os_page_bytes();
    cure.verbose = header->verbose == 1;
    take_nodes(table);
    take_modules(table);
    take_objects(table, objects);
    cure.table = table;
    return true;
}
