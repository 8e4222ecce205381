/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "sample.h"
#include "base/environment.h"
#include "os.h"
#include "ring.h"
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>

static atomic_bool stack_is_refused;
static bool restarts;

#if defined(__x86_64__)
static bool has_base_instructions;
#endif

void sample_begin(char **environment)
{
    const char *wanted = environment_find(environment, "NUMA_SAMPLE_RESTARTS");
    restarts = wanted ? strcmp(wanted, "on") == 0 : !os_timers_expire_at_return();
#if defined(__x86_64__)
    enum { FSGSBASE = 2 };
    has_base_instructions = getauxval(AT_HWCAP2) & FSGSBASE;
#endif
}

#if defined(__x86_64__)

static void take_registers(struct sample *sample, const ucontext_t *context)
{
    static const int ORDER[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    const greg_t *registers = context->uc_mcontext.gregs;
    for (int i = 0; i < 16; i++)
        sample->general[i] = (uint64_t)registers[ORDER[i]];
    memset(&sample->general[16], 0, sizeof sample->general - 16 * sizeof *sample->general);
    sample->ip = (uint64_t)registers[REG_RIP];
    sample->flags = (uint64_t)registers[REG_EFL];
    sample->architecture = X86_64;
    sample->gs_base = 0;
    if (has_base_instructions) {
        __asm__ volatile("rdfsbase %0" : "=r"(sample->fs_base));
        __asm__ volatile("rdgsbase %0" : "=r"(sample->gs_base));
        sample->known |= HAS_GS;
    } else {
        /* The C library keeps it at the start of the thread's block. */
        __asm__ volatile("mov %%fs:0, %0" : "=r"(sample->fs_base));
    }
}

static uint64_t stack_pointer(const struct sample *sample)
{
    return sample->general[4];
}

#else

static void take_registers(struct sample *sample, const ucontext_t *context)
{
    const mcontext_t *machine = &context->uc_mcontext;
    memset(sample->general, 0, sizeof sample->general);
    for (int i = 0; i < 31; i++)
        sample->general[i] = machine->regs[i];
    sample->general[31] = machine->sp;
    sample->ip = machine->pc;
    sample->flags = machine->pstate;
    sample->architecture = AARCH64;
    sample->gs_base = 0;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(sample->fs_base));
}

static uint64_t stack_pointer(const struct sample *sample)
{
    return sample->general[31];
}

#endif

/* Without the system call: the kernel has just written the signal's frame below the stack pointer, unless there is
 * another stack for signals; so that page is there. */
static size_t copy_page_of_frame(struct sample *sample, uint64_t from, const ucontext_t *context)
{
    enum { PAGE = 4096 };
    size_t left = PAGE - from % PAGE, bytes = left < STACK_BYTES ? left : STACK_BYTES;
    if (!(context->uc_stack.ss_flags & SS_DISABLE) || from % PAGE == 0)
        return 0;
    memcpy(sample->stack, (const void *)(uintptr_t)from, bytes);
    return bytes;
}

/* On the thread's own stack, where no page is missing. */
static bool copy_own_stack(struct sample *sample, const struct thread *record, uint64_t from)
{
    if (from < record->stack_low || from >= record->stack_high)
        return false;
    uint64_t left = record->stack_high - from;
    sample->stack_bytes = left < STACK_BYTES ? (uint32_t)left : STACK_BYTES;
    memcpy(sample->stack, (const void *)(uintptr_t)from, sample->stack_bytes);
    return true;
}

static void take_stack(struct sample *sample, const struct thread *record, const ucontext_t *context)
{
    uint64_t from = stack_pointer(sample) - BELOW_STACK;
    sample->stack_address = from;
    sample->stack_bytes = 0;
    if (copy_own_stack(sample, record, from))
        return;
    if (!atomic_load_explicit(&stack_is_refused, memory_order_relaxed)) {
        long bytes = os_read_own(from, sample->stack, STACK_BYTES);
        if (bytes == -EPERM || bytes == -ENOSYS || bytes == -EACCES)
            atomic_store(&stack_is_refused, true);
        else if (bytes > 0)
            sample->stack_bytes = (uint32_t)bytes;
    }
    if (sample->stack_bytes == 0 && atomic_load_explicit(&stack_is_refused, memory_order_relaxed))
        sample->stack_bytes = (uint32_t)copy_page_of_frame(sample, from, context);
}

void sample_take(struct thread *record, uint64_t now, const siginfo_t *info, const ucontext_t *context)
{
    struct sample sample;
    struct usage usage;
    sample.process = ring_process_id();
    sample.thread = (uint32_t)atomic_load_explicit(&record->thread, memory_order_relaxed);
    sample.time = now;
    sample.cpu = os_cpu();
    sample.overruns = (uint32_t)info->si_overrun;
    sample.cpu_time = sample.faults = sample.kernel_time = 0;
    sample.known = 0;
    if (os_usage(&usage)) {
        sample.cpu_time = usage.cpu_time - record->usage.cpu_time;
        sample.kernel_time = (uint32_t)((usage.kernel_time - record->usage.kernel_time) / 1000);
        sample.faults = (uint32_t)(usage.faults - record->usage.faults);
        sample.known |= HAS_FAULTS;
        record->usage = usage;
    }
    take_registers(&sample, context);
    take_stack(&sample, record, context);
    ring_write(&sample);
}

#if defined(__x86_64__)

/* Calls that the kernel ends when a signal has a handler, also with SA_RESTART, and that may start again with the same
 * registers. The thread has not slept: the timer's signal comes while it runs. */
static bool may_start_again(uint32_t number)
{
    static const uint16_t NUMBERS[] = {
        0,   1,   7,   23,  34,  35,  43,  44,  45,  46,  47,  65,  69,  70,  128, 130,
        202, 208, 220, 230, 232, 242, 243, 270, 271, 281, 288, 299, 307, 333, 441, 449,
    };
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (NUMBERS[i] == number)
            return true;
    return false;
}

void sample_restart_call(ucontext_t *context)
{
    enum { MOV = 0xb8, LENGTH = 7 };
    greg_t *registers = context->uc_mcontext.gregs;
    uint8_t code[LENGTH];
    uint32_t number;
    if (!restarts || registers[REG_RAX] != -EINTR)
        return;
    /* mov $NUMBER, %eax; syscall */
    if (os_read_own((uint64_t)registers[REG_RIP] - LENGTH, code, LENGTH) != LENGTH || code[0] != MOV ||
        code[5] != 0x0f || code[6] != 0x05)
        return;
    memcpy(&number, code + 1, sizeof number);
    if (!may_start_again(number))
        return;
    registers[REG_RAX] = (greg_t)number;
    registers[REG_RIP] -= 2;
}

#else

void sample_restart_call(ucontext_t *context)
{
    (void)context;
}

#endif
