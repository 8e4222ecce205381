//! Samples as the decoder of operands takes them: its registers, and the memory of the process with the stack of the
//! sample in it.

use crate::operand::AddressSpace;
#[cfg(target_arch = "aarch64")]
use crate::operand::ArmRegisters;
#[cfg(target_arch = "x86_64")]
use crate::operand::X86Registers;
use crate::sample::StackPiece;
use numakit_sys::registers::UserRegisters;

/// The registers of a sample.
#[cfg(target_arch = "x86_64")]
pub fn registers(of: &UserRegisters) -> X86Registers {
    let UserRegisters { general, ip, flags, thread_base, gs_base } = *of;
    X86Registers { general, ip, flags, fs_base: thread_base, gs_base }
}

/// The registers of a sample. Those of performance events have no flags.
#[cfg(target_arch = "aarch64")]
pub fn registers(of: &UserRegisters) -> ArmRegisters {
    let mut general = [0; 31];
    general.copy_from_slice(&of.general[..31]);
    ArmRegisters { general, sp: of.stack_pointer(), pc: of.ip, state: of.flags }
}

/// The instruction that calls the kernel.
#[cfg(target_arch = "x86_64")]
const CALL: [u8; 2] = [0x0f, 0x05];
#[cfg(target_arch = "aarch64")]
const CALL: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];

/// Whether the instruction before an address calls the kernel.
pub fn is_behind_call(address: u64, space: &dyn AddressSpace) -> bool {
    let mut bytes = CALL;
    bytes.fill(0);
    let count = CALL.len();
    space.code(address.wrapping_sub(count as u64), &mut bytes) == count && bytes == CALL
}

/// The memory of a process at the time of a sample: the stack as it was, everything else as it is now.
#[derive(Clone, Copy)]
pub struct SampledMemory<'a> {
    /// The memory as it is now.
    pub now: &'a dyn AddressSpace,
    /// The stack of the sample.
    pub stack: &'a StackPiece,
}

impl AddressSpace for SampledMemory<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.stack.read(address, into) || self.now.read(address, into)
    }

    fn code(&self, address: u64, into: &mut [u8]) -> usize {
        self.now.code(address, into)
    }

    fn changes(&self, address: u64) -> bool {
        self.now.changes(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ObservedProcess;

    #[test]
    fn the_stack_is_as_it_was_with_the_sample() {
        let process = ObservedProcess::open(std::process::id()).unwrap();
        let now = [7u8; 16];
        let address = &raw const now as u64;
        let stack = StackPiece { address, bytes: vec![1; 8] };
        let memory = SampledMemory { now: &process, stack: &stack };
        let mut bytes = [0; 8];
        assert!(memory.read(address, &mut bytes) && bytes == [1; 8]);
        // Beyond the piece, or partly in it, it is what is there now.
        assert!(memory.read(address + 8, &mut bytes) && bytes == [7; 8]);
        assert!(memory.read(address + 4, &mut bytes) && bytes == [7; 8]);
        assert_eq!(memory.code(address, &mut bytes), 0);
    }

    #[test]
    fn calls_of_the_kernel_are_found() {
        struct Code([u8; 8]);
        impl AddressSpace for Code {
            fn read(&self, _: u64, _: &mut [u8]) -> bool {
                false
            }

            fn code(&self, address: u64, into: &mut [u8]) -> usize {
                let code = self.0.get(address.wrapping_sub(0x100) as usize..).unwrap_or(&[]);
                let count = code.len().min(into.len());
                into[..count].copy_from_slice(&code[..count]);
                count
            }
        }
        let mut code = Code([0x90; 8]);
        code.0[..CALL.len()].copy_from_slice(&CALL);
        let end = 0x100 + CALL.len() as u64;
        assert!(is_behind_call(end, &code) && !is_behind_call(end + 1, &code) && !is_behind_call(0, &code));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn registers_keep_their_numbers() {
        let mut from = UserRegisters { ip: 1, flags: 2, thread_base: Some(3), ..UserRegisters::default() };
        from.general[numakit_sys::registers::STACK_POINTER] = 9;
        let to = registers(&from);
        assert_eq!((to.ip, to.flags, to.fs_base, to.gs_base), (1, 2, Some(3), None));
        assert_eq!((to.general, to.general[crate::operand::STACK_POINTER]), (from.general, 9));
    }
}
