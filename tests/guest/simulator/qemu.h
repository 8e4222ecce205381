/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The functions of QEMU's plugin interface, version 1 (QEMU 7.2), that the simulator uses. */
#ifndef SIMULATOR_QEMU_H
#define SIMULATOR_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_INTERFACE 1

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

typedef struct {
    const char *target_name;
    struct {
        int min;
        int cur;
    } version;
    bool system_emulation;
    struct {
        int smp_vcpus;
        int max_vcpus;
    } system;
} qemu_info_t;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_CB_RW_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

typedef void (*qemu_translated)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*qemu_executed)(unsigned int cpu, void *data);
typedef void (*qemu_accessed)(unsigned int cpu, qemu_plugin_meminfo_t, uint64_t address, void *data);
typedef void (*qemu_done)(qemu_plugin_id_t);
typedef void (*qemu_exit)(qemu_plugin_id_t, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_translated);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, qemu_executed,
                                            enum qemu_plugin_cb_flags, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, qemu_accessed,
                                      enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw, void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_exit, void *data);
void qemu_plugin_reset(qemu_plugin_id_t, qemu_done);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);

#endif
