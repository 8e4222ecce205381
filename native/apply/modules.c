/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* dlopen takes the place from which it is called into account, so this library does not call it for the program, but only jumps there
 * (loader.c), and looks for what was loaded when it is called next. */
#define _GNU_SOURCE
#include "modules.h"
#include "policy.h"
#include "sites.h"
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>

struct code_range between[MAX_BETWEEN];
__thread uintptr_t changing_frame;

static struct lock looking;
static unsigned long long adds = UINT64_MAX, removals;
static _Atomic int threads_that_change;

struct search {
    bool has_begun, is_changed;
    bool is_seen[MAX_MODULES];
    size_t between_count;
    bool is_new[MAX_MODULES];
};

/* The build ID in the notes of a segment; NULL if it has none. */
static const uint8_t *build_id_in(const uint8_t *notes, size_t bytes, size_t *length)
{
    ElfW(Nhdr) note;
    for (size_t at = 0; at + sizeof note <= bytes;) {
        memcpy(&note, notes + at, sizeof note);
        size_t name = at + sizeof note, content = name + (note.n_namesz + 3) / 4 * 4;
        if (content > bytes || note.n_descsz > bytes - content)
            return NULL;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0) {
            *length = note.n_descsz;
            return notes + content;
        }
        at = content + (note.n_descsz + 3) / 4 * 4;
    }
    return NULL;
}

static bool is_loaded_part(const struct dl_phdr_info *library, const ElfW(Phdr) *part)
{
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &library->dlpi_phdr[i];
        if (load->p_type == PT_LOAD && load->p_flags & PF_R && part->p_vaddr >= load->p_vaddr &&
            part->p_vaddr + part->p_memsz <= load->p_vaddr + load->p_filesz)
            return true;
    }
    return false;
}

static bool has_id(const struct dl_phdr_info *library, const struct module *module)
{
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        size_t length = 0;
        if (part->p_type != PT_NOTE || !is_loaded_part(library, part))
            continue;
        const uint8_t *id = build_id_in((const uint8_t *)(library->dlpi_addr + part->p_vaddr), part->p_memsz, &length);
        if (id && length == module->build_id_bytes && memcmp(id, module->build_id, length) == 0)
            return true;
    }
    return false;
}

static void note_module(const struct dl_phdr_info *library, struct search *search, size_t number)
{
    struct module *module = &cure.module[number];
    search->is_seen[number] = true;
    if (module->is_loaded && module->bias == library->dlpi_addr)
        return;
    search->is_new[number] = search->is_changed = true;
    module->is_loaded = true;
    module->bias = library->dlpi_addr;
    module->from = UINTPTR_MAX;
    module->to = 0;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *load = &library->dlpi_phdr[i];
        uintptr_t from = module->bias + load->p_vaddr;
        if (load->p_type != PT_LOAD || !(load->p_flags & PF_W))
            continue;
        module->from = from < module->from ? from : module->from;
        module->to = from + load->p_memsz > module->to ? from + load->p_memsz : module->to;
    }
    atomic_store(&module->told->state, LOADED);
}

static bool is_of(const struct object *object, size_t number)
{
    bool is_it = object->kind == OF_VARIABLE && object->module == number;
    for (uint32_t i = 0; i < object->chain_count; i++)
        is_it |= object->chain_module[i] == number;
    return is_it;
}

/* A further module with this build ID, with objects as those of the first. Returns its number, or that of the first where there is no room. */
static size_t copy_module(size_t first)
{
    size_t fresh = cure.module_count, objects = cure.object_count, count = objects;
    for (size_t i = 0; i < objects; i++)
        count += is_of(&cure.object[i], first);
    if (fresh == MAX_MODULES || count > MAX_OBJECTS)
        return first;
    cure.module[fresh] = cure.module[first];
    cure.module[fresh].is_loaded = false;
    for (size_t i = 0, at = objects; i < objects; i++) {
        if (!is_of(&cure.object[i], first))
            continue;
        struct object *object = &cure.object[at++];
        *object = cure.object[i];
        object->module = (uint32_t)fresh;
        for (uint32_t j = 0; j < object->chain_count; j++)
            if (object->chain_module[j] == first)
                object->chain_module[j] = (uint32_t)fresh;
    }
    cure.module_count = fresh + 1;
    atomic_thread_fence(memory_order_release);
    cure.object_count = count;
    return fresh;
}

/* A build may be loaded more than once, from copies of its file. Those that were loaded before come first. */
static void find_module(const struct dl_phdr_info *library, struct search *search)
{
    size_t none = cure.module_count, first = none, found = none;
    for (size_t i = 0; i < none; i++) {
        const struct module *module = &cure.module[i];
        if (!module->build_id_bytes || !has_id(library, module))
            continue;
        first = first == none ? i : first;
        bool is_it = module->is_loaded && module->bias == library->dlpi_addr;
        if (is_it || (found == none && !search->is_seen[i]))
            found = i;
        if (is_it)
            break;
    }
    if (first == none)
        return;
    found = found == none ? copy_module(first) : found;
    if (!search->is_seen[found])
        note_module(library, search, found);
}

/* The code of a library that calls malloc for others. */
static void note_between(const struct dl_phdr_info *library, struct search *search)
{
    static const char *const NAMES[] = {"/libnumaexplain.so", "/libnumacount.so", "/libnumaapply.so", "/libstdc++.so", "/libc++.so"};
    const char *path = library->dlpi_name;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        if (!strstr(path, NAMES[i]))
            continue;
        for (int j = 0; j < library->dlpi_phnum && search->between_count < MAX_BETWEEN; j++) {
            const ElfW(Phdr) *load = &library->dlpi_phdr[j];
            if (load->p_type != PT_LOAD || !(load->p_flags & PF_X))
                continue;
            struct code_range *range = &between[search->between_count++];
            range->from = library->dlpi_addr + load->p_vaddr;
            range->bytes = load->p_memsz;
        }
    }
}

static int see(struct dl_phdr_info *library, size_t size, void *data)
{
    struct search *search = data;
    bool has_counts = size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof library->dlpi_subs;
    if (has_counts && !search->has_begun && library->dlpi_adds == adds && library->dlpi_subs == removals)
        return 1;
    search->has_begun = true;
    adds = library->dlpi_adds;
    removals = library->dlpi_subs;
    note_between(library, search);
    find_module(library, search);
    return 0;
}

static void set_variables(const struct search *search)
{
    for (size_t i = 0; i < cure.object_count; i++) {
        struct object *object = &cure.object[i];
        if (object->kind != OF_VARIABLE || !search->is_new[object->module] || !policy_can_be_set(object))
            continue;
        const struct module *module = &cure.module[object->module];
        uintptr_t from = module->bias + object->address;
        /* A table for another file of this build ID would not be right. */
        if (from < module->from || from + object->bytes > module->to) {
            count_up(&object->told->refused, 1);
            atomic_store(&object->told->error, EFAULT);
        } else if (policy_set(object, from, object->bytes, ANY_NODE, true)) {
            policy_count(object, 1, object->bytes);
        }
    }
}

void modules_look(void)
{
    struct search search = {0};
    if (!cure.table)
        return;
    lock(&looking);
    dl_iterate_phdr(see, &search);
    for (size_t i = 0; search.has_begun && i < cure.module_count; i++) {
        if (!cure.module[i].is_loaded || search.is_seen[i])
            continue;
        cure.module[i].is_loaded = false;
        search.is_changed = true;
    }
    if (search.is_changed) {
        sites_find();
        set_variables(&search);
    }
    unlock(&looking);
}

void modules_will_change(const void *frame)
{
    if (!cure.table || changing_frame)
        return;
    changing_frame = (uintptr_t)frame;
    if (atomic_fetch_add(&threads_that_change, 1) == 0)
        sites_want_all(true);
}

void modules_follow_slowly(const void *frame)
{
    uintptr_t changing = changing_frame;
    /* What is done here may allocate. */
    changing_frame = 0;
    modules_look();
    changing_frame = changing;
    if ((uintptr_t)frame < changing)
        return;
    changing_frame = 0;
    if (atomic_fetch_sub(&threads_that_change, 1) == 1)
        sites_want_all(false);
}

void modules_lock(void (*function)(struct lock *))
{
    function(&looking);
}
