//! The registers of an interrupted thread.

/// General registers of x86-64, in the order of their numbers in instructions: rax, rcx, rdx, rbx, rsp, rbp, rsi,
/// rdi, r8 to r15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct X86Registers {
    /// The general registers.
    pub general: [u64; 16],
    /// The address of the next instruction.
    pub ip: u64,
    /// The flags.
    pub flags: u64,
    /// Where thread-local storage is, if the sample has it.
    pub fs_base: Option<u64>,
    /// The base of gs, if the sample has it.
    pub gs_base: Option<u64>,
}

/// Number of rsp in [`X86Registers::general`].
pub const STACK_POINTER: usize = 4;

/// General registers of AArch64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArmRegisters {
    /// x0 to x30.
    pub general: [u64; 31],
    /// The stack pointer.
    pub sp: u64,
    /// The address of the next instruction.
    pub pc: u64,
    /// The processor state: its bits 31 to 28 are N, Z, C and V.
    pub state: u64,
}
