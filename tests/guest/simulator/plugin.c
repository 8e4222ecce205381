/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The hooks: which instructions and accesses of the guest the model sees, and when. */
#include "cards.h"
#include "model.h"
#include "qemu.h"
#include "result.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TLB_ENTRIES = 512,
    LINE_BYTES = 1 << LINE_SHIFT,
    WIDEST_ACCESS = 64,
    BEGIN = 1,
    END = 2,
};
#define NOT_MEMORY (-1)
#define NO_PAGE UINT64_MAX

/* The translation of a page number of the guest. As in hardware, an entry lives until the guest
 * changes its page tables' root or invalidates it. */
struct translation {
    uint64_t page;
    int64_t memory; /* page counted over all nodes, or NOT_MEMORY */
};

struct vcpu {
    uint64_t region; /* the region that the translations belong to */
    struct translation tlb[TLB_ENTRIES];
} __attribute__((aligned(128)));

__attribute__((visibility("default"))) int qemu_plugin_version = QEMU_INTERFACE;
__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t, const qemu_info_t *, int, char **);

static struct vcpu vcpus[MAX_CPUS];
static qemu_plugin_id_t self;
static char result_path[512];
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static bool asked; /* for everything to be instrumented */
static bool instrumented;
static uint64_t regions, elapsed_ns, began_ns;
static unsigned depth; /* begin markers without their end */
/* The number of the region that is counted now; 0 between regions. */
static _Atomic uint64_t counting;

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void forget_translations(unsigned int cpu, void *unused)
{
    (void)unused;
    for (int i = 0; i < TLB_ENTRIES; i++)
        vcpus[cpu].tlb[i].page = NO_PAGE;
}

static int64_t translate(struct vcpu *vcpu, qemu_plugin_meminfo_t info, uint64_t address)
{
    uint64_t page = address >> PAGE_SHIFT;
    struct translation *entry = &vcpu->tlb[page % TLB_ENTRIES];
    if (__builtin_expect(entry->page == page, 1))
        return entry->memory;
    struct qemu_plugin_hwaddr *place = qemu_plugin_get_hwaddr(info, address);
    if (!place || qemu_plugin_hwaddr_is_io(place))
        return NOT_MEMORY;
    entry->memory = machine_page(qemu_plugin_hwaddr_phys_addr(place));
    entry->page = page;
    return entry->memory;
}

static void accessed(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *unused)
{
    (void)unused;
    uint64_t region = atomic_load_explicit(&counting, memory_order_relaxed);
    if (region == 0)
        return;
    struct vcpu *vcpu = &vcpus[cpu];
    if (__builtin_expect(vcpu->region != region, 0)) {
        forget_translations(cpu, NULL);
        vcpu->region = region;
    }
    bool store = qemu_plugin_mem_is_store(info);
    int64_t page = translate(vcpu, info, address);
    if (__builtin_expect(page < 0, 0)) {
        /* Memory of no node: the registers of a card, perhaps. */
        if (store)
            cards_serve();
        return;
    }
    struct cpu *model = &model_cpu[cpu];
    model->counts.accesses++;
    uint32_t first = (uint32_t)(address >> LINE_SHIFT) % LINES_PER_PAGE;
    uint32_t line = (uint32_t)page * LINES_PER_PAGE + first;
    model_access(model, line, store);
    uint32_t offset = (uint32_t)address % LINE_BYTES;
    if (__builtin_expect(offset > LINE_BYTES - WIDEST_ACCESS / 2, 0) && first + 1 < LINES_PER_PAGE &&
        offset + (1u << qemu_plugin_mem_size_shift(info)) > LINE_BYTES)
        model_access(model, line + 1, store);
}

static void instrument(qemu_plugin_id_t id);

/* From the first region on everything is instrumented; what was translated before is made anew.
 * Not a moment earlier: hooks that go away in the reset would still be called. */
static void begin(unsigned int cpu, void *unused)
{
    (void)cpu, (void)unused;
    pthread_mutex_lock(&gate);
    bool first = !asked;
    asked = true;
    if (depth++ == 0) {
        model_empty();
        began_ns = now_ns();
        atomic_store(&counting, ++regions);
    }
    pthread_mutex_unlock(&gate);
    if (first)
        qemu_plugin_reset(self, instrument);
}

static void end(unsigned int cpu, void *unused)
{
    (void)cpu, (void)unused;
    pthread_mutex_lock(&gate);
    if (depth > 0 && --depth == 0) {
        atomic_store(&counting, 0);
        elapsed_ns += now_ns() - began_ns;
        result_region();
        result_write(result_path, regions, elapsed_ns);
        cards_refresh();
    }
    pthread_mutex_unlock(&gate);
}

static void leave(qemu_plugin_id_t id, void *unused)
{
    (void)id, (void)unused;
    if (atomic_exchange(&counting, 0) != 0) {
        elapsed_ns += now_ns() - began_ns;
        result_region();
    }
    result_write(result_path, regions, elapsed_ns);
}

/* The number of a marker instruction, nopl 0x534e4dNN(%rax); 0 for any other. */
static int marker(const uint8_t *code, size_t bytes)
{
    static const uint8_t opcode[] = {0x0f, 0x1f, 0x80}, signature[] = {0x4d, 0x4e, 0x53};
    bool marks = bytes == 7 && memcmp(code, opcode, 3) == 0 && memcmp(code + 4, signature, 3) == 0;
    return marks ? code[3] : 0;
}

/* Whether an instruction makes translations invalid: a write to cr0, cr3 or cr4, invlpg, invpcid. */
static bool changes_translations(const uint8_t *code, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && (code[i] == 0x66 || code[i] == 0xf2 || code[i] == 0xf3 || (code[i] & 0xf0) == 0x40))
        i++;
    if (i + 2 >= bytes || code[i] != 0x0f)
        return false;
    unsigned field = code[i + 2] >> 3 & 7, mode = code[i + 2] >> 6;
    switch (code[i + 1]) {
    case 0x22:
        return field == 0 || field == 3 || field == 4;
    case 0x01:
        return field == 7 && mode != 3;
    case 0x38:
        return code[i + 2] == 0x82;
    default:
        return false;
    }
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
        const uint8_t *code = qemu_plugin_insn_data(insn);
        size_t bytes = qemu_plugin_insn_size(insn);
        int mark = marker(code, bytes);
        if (mark == BEGIN || mark == END)
            qemu_plugin_register_vcpu_insn_exec_cb(insn, mark == BEGIN ? begin : end, QEMU_PLUGIN_CB_NO_REGS, NULL);
        if (!instrumented)
            continue;
        if (changes_translations(code, bytes))
            qemu_plugin_register_vcpu_insn_exec_cb(insn, forget_translations, QEMU_PLUGIN_CB_NO_REGS, NULL);
        /* One hook for both: this interface mixes them up when asked for one kind. */
        qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
    }
}

static void install(qemu_plugin_id_t id)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, leave, NULL);
}

/* After a reset, which dropped all hooks and translations, with all vCPUs at rest. */
static void instrument(qemu_plugin_id_t id)
{
    instrumented = true;
    install(id);
}

static bool compatible(const qemu_info_t *info)
{
    if (info->version.min > QEMU_INTERFACE || info->version.cur < QEMU_INTERFACE) {
        fprintf(stderr, "simulator: made for version %d of QEMU's plugin interface, this one has %d to %d\n",
                QEMU_INTERFACE, info->version.min, info->version.cur);
        return false;
    }
    if (!info->system_emulation || strcmp(info->target_name, "x86_64") != 0) {
        fprintf(stderr, "simulator: only for qemu-system-x86_64, this is for %s\n", info->target_name);
        return false;
    }
    if (info->system.max_vcpus != machine.cpus) {
        fprintf(stderr, "simulator: the machine file has %d CPUs, QEMU %d\n", machine.cpus, info->system.max_vcpus);
        return false;
    }
    return true;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int words, char **word)
{
    char machine_path[512] = "";
    uint64_t start = 0;
    for (int i = 0; i < words; i++) {
        if (sscanf(word[i], "machine=%511s", machine_path) != 1 && sscanf(word[i], "result=%511s", result_path) != 1 &&
            sscanf(word[i], "start=%" SCNu64, &start) != 1) {
            fprintf(stderr, "simulator: not an argument: %s; there are machine=, result=, start=\n", word[i]);
            return 1;
        }
    }
    if (!result_path[0]) {
        fprintf(stderr, "simulator: no result=FILE\n");
        return 1;
    }
    if (!machine_read(machine_path) || !compatible(info) || !model_create() || !cards_create(start))
        return 1;
    self = id;
    install(id);
    return 0;
}
