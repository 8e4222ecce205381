/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The direct caller is found by its return address. Where that does not tell, the further return addresses of the chain must be on the
 * stack above, in their order. This is no unwinding: it needs neither frame pointers nor tables, and takes a chain that ended before,
 * whose words are still there, for one that goes on. Then a block gets the policy of another object, which is never wrong but slow. */
#include "sites.h"
#include "modules.h"
#include "stack.h"

enum { FILTER_BITS = 12, WORDS_BETWEEN = 48, MAX_WORDS = 512 };

struct wanted wanted = {UINT64_MAX, 0};

struct place site_places[PLACES];

/* Of all addresses of chains. */
static _Atomic uint64_t filter[(1 << FILTER_BITS) / 64];
static struct wanted of_objects;
static atomic_bool wants_all;

static inline bool may_be_in_chain(uintptr_t code)
{
    uint64_t bit = site_mixed(code) >> (64 - FILTER_BITS);
    return RARELY(atomic_load_explicit(&filter[bit / 64], memory_order_relaxed) >> bit % 64 & 1);
}

static void place_object(struct object *object, uintptr_t code)
{
    size_t at = site_mixed(code) >> (64 - PLACES_BITS);
    while (site_places[at].code && site_places[at].code != code)
        at = (at + 1) % PLACES;
    object->next = (uint16_t)site_places[at].first;
    atomic_store(&site_places[at].first, (uint32_t)(object - cure.object) + 1);
    atomic_store(&site_places[at].code, code);
}

static inline struct object *next_object(const struct object *object)
{
    return object->next ? &cure.object[object->next - 1] : NULL;
}

/* Sizes of the object, and some others, so that these are counted. */
static void want(struct wanted *sizes, const struct object *object)
{
    size_t least = object->smallest < object->least ? object->smallest : object->least;
    for (size_t size = least; size < SMALL && size <= object->largest; size++)
        sizes->small |= UINT64_C(1) << (size >> SMALL_STEP_BITS);
    if (object->largest < SMALL && object->least == SIZE_MAX)
        return;
    if (object->least != SIZE_MAX && least > cure.page_bytes)
        least = cure.page_bytes;
    least = least < SMALL ? SMALL : least;
    sizes->large = least < sizes->large ? least : sizes->large;
}

static void find(struct object *object, struct wanted *sizes)
{
    uintptr_t codes[MAX_CHAIN];
    atomic_store(&object->code[0], 0);
    for (uint32_t i = 0; i < object->chain_count; i++) {
        const struct module *module = &cure.module[object->chain_module[i]];
        if (!module->is_loaded)
            return;
        codes[i] = module->bias + object->chain[i];
        uint64_t bit = site_mixed(codes[i]) >> (64 - FILTER_BITS);
        atomic_fetch_or(&filter[bit / 64], UINT64_C(1) << bit % 64);
    }
    for (uint32_t i = object->chain_count; i-- > 0;)
        atomic_store(&object->code[i], codes[i]);
    want(sizes, object);
    place_object(object, codes[0]);
}

static void use_wanted(void)
{
    bool all = atomic_load(&wants_all);
    atomic_store(&wanted.small, all ? UINT64_MAX : of_objects.small);
    atomic_store(&wanted.large, all ? 0 : of_objects.large);
}

void sites_find(void)
{
    struct wanted sizes = {0, SIZE_MAX};
    /* Other threads find nothing meanwhile. */
    for (size_t i = 0; i < PLACES; i++) {
        atomic_store(&site_places[i].code, 0);
        atomic_store(&site_places[i].first, 0);
    }
    for (size_t i = 0; i < sizeof filter / sizeof *filter; i++)
        atomic_store(&filter[i], 0);
    for (size_t i = 0; i < cure.object_count; i++)
        if (cure.object[i].kind == OF_BLOCKS)
            find(&cure.object[i], &sizes);
    of_objects.small = sizes.small;
    of_objects.large = sizes.large;
    use_wanted();
}

void sites_want_all(bool all)
{
    atomic_store(&wants_all, all);
    use_wanted();
}

void sites_stop(void)
{
    of_objects.small = 0;
    of_objects.large = SIZE_MAX;
    use_wanted();
}

/* What a block may be of: the object with the longest chain that takes its size, or one that takes other sizes. */
struct found {
    struct object *object, *other;
};

static void consider(struct found *found, struct object *object, size_t size)
{
    struct object **best = object_takes(object, size) ? &found->object : &found->other;
    if (!*best || object->chain_count > (*best)->chain_count)
        *best = object;
}

/* Of the objects with this direct caller, those whose chain is on the stack. */
static void follow(struct found *found, struct object *first, size_t size, const uintptr_t *words, const uintptr_t *end)
{
    uint8_t seen[MAX_OBJECTS];
    size_t open = 0;
    for (struct object *object = first; object; object = next_object(object)) {
        seen[object - cure.object] = 1;
        if (object->chain_count == 1)
            consider(found, object, size);
        else
            open++;
    }
    for (; open && words < end; words++) {
        if (!may_be_in_chain(*words))
            continue;
        for (struct object *object = first; object; object = next_object(object)) {
            uint8_t *at = &seen[object - cure.object];
            if (*at >= object->chain_count || object->code[*at] != *words || ++*at < object->chain_count)
                continue;
            open--;
            consider(found, object, size);
        }
    }
}

/* The direct caller may be a library that allocates for its caller: then that is a few words above. */
static struct object *caller_above(const uintptr_t **words, const uintptr_t *end)
{
    const uintptr_t *last = *words + WORDS_BETWEEN < end ? *words + WORDS_BETWEEN : end;
    for (; *words < last; ++*words) {
        struct object *object = may_be_in_chain(**words) ? site_first(**words) : NULL;
        if (object)
            return object;
    }
    return NULL;
}

static void find_by_caller(struct found *found, size_t size, const void *frame)
{
    const uintptr_t *words = (const uintptr_t *)frame + 1, *end = words + 1;
    struct object *first = site_first(*words);
    if (first && first->chain_count == 1 && !first->next) {
        consider(found, first, size);
        return;
    }
    if (!first && !is_between(*words))
        return;
    words++;
    end = stack_end(words, MAX_WORDS);
    if (!first) {
        first = caller_above(&words, end);
        words += words < end;
    }
    if (first)
        follow(found, first, size, words, end);
}

struct object *site_of(size_t size, const void *frame)
{
    struct found found = {NULL, NULL};
    find_by_caller(&found, size, frame);
    if (!found.object && found.other)
        count_up(&found.other->told->other_size, 1);
    return found.object;
}
