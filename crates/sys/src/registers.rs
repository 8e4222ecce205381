//! The general registers of an interrupted thread, as performance events and ptrace return them.

/// Number of general registers: on x86-64 in the order of instruction encoding (rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi,
/// r8 to r15), on AArch64 x0 to x30 and the stack pointer.
#[cfg(target_arch = "x86_64")]
pub const GENERAL: usize = 16;
/// Number of general registers: x0 to x30 and the stack pointer.
#[cfg(not(target_arch = "x86_64"))]
pub const GENERAL: usize = 32;

/// Place of the stack pointer among the general registers.
#[cfg(target_arch = "x86_64")]
pub const STACK_POINTER: usize = 4;
/// Place of the stack pointer among the general registers.
#[cfg(not(target_arch = "x86_64"))]
pub const STACK_POINTER: usize = 31;

/// The registers of a thread in user mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UserRegisters {
    /// The general registers.
    pub general: [u64; GENERAL],
    /// The address of the next instruction.
    pub ip: u64,
    /// The flags; 0 where the source has none (performance events of AArch64).
    pub flags: u64,
    /// The base of thread-local storage (fs on x86-64), if the source has it.
    pub thread_base: Option<u64>,
    /// The base of gs on x86-64, if the source has it.
    pub gs_base: Option<u64>,
}

impl UserRegisters {
    /// The stack pointer.
    pub fn stack_pointer(&self) -> u64 {
        self.general[STACK_POINTER]
    }
}

/// Where each register is that `perf_event_open` delivers, by the kernel's numbers.
#[cfg(target_arch = "x86_64")]
mod perf {
    /// ax bx cx dx si di bp sp, ip and flags, r8 to r15.
    pub const MASK: u64 = 0x3ff | 0xff << 16;
    /// Place among the general registers, by number.
    pub const PLACES: [usize; 8] = [0, 3, 1, 2, 6, 7, 5, 4];
    pub const IP: u32 = 8;
    pub const FLAGS: u32 = 9;

    pub fn place(number: u32) -> Option<usize> {
        match number {
            0..8 => Some(PLACES[number as usize]),
            16..24 => Some(number as usize - 8),
            _ => None,
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod perf {
    /// x0 to x30, sp, pc.
    pub const MASK: u64 = (1 << 33) - 1;
    pub const IP: u32 = 32;
    /// The number of the flags, which performance events do not deliver.
    pub const FLAGS: u32 = 64;

    pub fn place(number: u32) -> Option<usize> {
        (number < 32).then_some(number as usize)
    }
}

/// The mask of registers that `perf_event_open` is asked for.
pub const PERF_MASK: u64 = perf::MASK;

impl UserRegisters {
    /// The registers of a mask from their values in the order of their numbers, as in a sample.
    pub fn of_perf(mask: u64, values: impl Iterator<Item = u64>) -> Self {
        let mut registers = Self::default();
        let numbers = (0..64).filter(|number| mask >> number & 1 == 1);
        for (number, value) in numbers.zip(values) {
            match perf::place(number) {
                Some(place) => registers.general[place] = value,
                None if number == perf::IP => registers.ip = value,
                None if number == perf::FLAGS => registers.flags = value,
                None => {}
            }
        }
        registers
    }
}

#[cfg(target_arch = "x86_64")]
impl From<&libc::user_regs_struct> for UserRegisters {
    fn from(from: &libc::user_regs_struct) -> Self {
        Self {
            general: [
                from.rax, from.rcx, from.rdx, from.rbx, from.rsp, from.rbp, from.rsi, from.rdi, from.r8,
                from.r9, from.r10, from.r11, from.r12, from.r13, from.r14, from.r15,
            ],
            ip: from.rip,
            flags: from.eflags,
            thread_base: Some(from.fs_base),
            gs_base: Some(from.gs_base),
        }
    }
}

#[cfg(target_arch = "aarch64")]
impl From<&libc::user_regs_struct> for UserRegisters {
    fn from(from: &libc::user_regs_struct) -> Self {
        let mut general = [0; GENERAL];
        general[..31].copy_from_slice(&from.regs);
        general[STACK_POINTER] = from.sp;
        Self { general, ip: from.pc, flags: from.pstate, thread_base: None, gs_base: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_register_of_a_sample_has_its_place() {
        let count = PERF_MASK.count_ones() as u64;
        let registers = UserRegisters::of_perf(PERF_MASK, 100..100 + count);
        if cfg!(target_arch = "x86_64") {
            // The kernel's order: ax bx cx dx si di bp sp ip flags r8...
            assert_eq!(registers.general[..8], [100, 102, 103, 101, 107, 106, 104, 105]);
            assert_eq!((registers.ip, registers.flags), (108, 109));
            assert_eq!(registers.general[8..], [110, 111, 112, 113, 114, 115, 116, 117]);
            assert_eq!(registers.stack_pointer(), 107);
        } else {
            assert_eq!((registers.ip, registers.stack_pointer()), (132, 131));
        }
        assert_eq!(UserRegisters::of_perf(0, [7].into_iter()), UserRegisters::default());
    }
}
