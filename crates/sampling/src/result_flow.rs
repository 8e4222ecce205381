//! Where the result of a call goes: the registers that have it behind the call, and where these are stored. So it is known which
//! variable of the caller is the block that an allocator returned.
//!
//! The code behind the call is followed forward until the next call. Nothing is executed.

use crate::operand::AddressSpace;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

/// Bytes and instructions behind the call that are followed.
const MAX_BYTES: usize = 128;
const MAX_INSTRUCTIONS: usize = 16;

/// A place that has the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultPlace {
    /// A register, before the instruction at an address.
    Register {
        /// Its number in debug information.
        number: u16,
        /// The address.
        at: u64,
    },
    /// Memory at a distance from the frame pointer, from an instruction on.
    Frame {
        /// The distance in bytes.
        offset: i64,
        /// The address of the instruction.
        at: u64,
    },
    /// Memory at an address.
    Memory {
        /// The address.
        address: u64,
    },
}

/// The places that have the result of the call before an address. Only code of x86-64 is understood.
pub fn places(after: u64, space: &dyn AddressSpace) -> Vec<ResultPlace> {
    let mut bytes = [0; MAX_BYTES];
    let count = if cfg!(target_arch = "x86_64") { space.code(after, &mut bytes) } else { 0 };
    let mut decoder = Decoder::with_ip(64, &bytes[..count], after, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let (mut holders, mut places) = (vec![Register::RAX], Vec::new());
    for instruction in decoder.iter().take(MAX_INSTRUCTIONS) {
        if instruction.is_invalid() || holders.is_empty() {
            break;
        }
        let at = instruction.ip();
        places.extend(
            holders.iter().filter_map(|holder| Some(ResultPlace::Register { number: number(*holder)?, at })),
        );
        if !matches!(instruction.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch) {
            break;
        }
        let copied = is_copy(&instruction, &holders);
        if copied && instruction.op0_kind() == OpKind::Memory {
            places.extend(stored(&instruction));
        }
        for used in factory.info(&instruction).used_registers() {
            if !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess) {
                let written = used.register().full_register();
                holders.retain(|holder| *holder != written);
            }
        }
        if copied && instruction.op0_kind() == OpKind::Register {
            holders.push(instruction.op0_register());
        }
    }
    places
}

/// Whether an instruction copies the whole result.
fn is_copy(instruction: &Instruction, holders: &[Register]) -> bool {
    instruction.mnemonic() == Mnemonic::Mov
        && instruction.op1_kind() == OpKind::Register
        && holders.contains(&instruction.op1_register())
}

/// The place in memory where an instruction stores.
fn stored(instruction: &Instruction) -> Option<ResultPlace> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(ResultPlace::Memory { address: instruction.ip_rel_memory_address() });
    }
    let is_of_frame =
        instruction.memory_base() == Register::RBP && instruction.memory_index() == Register::None;
    let offset = instruction.memory_displacement64().cast_signed();
    is_of_frame.then_some(ResultPlace::Frame { offset, at: instruction.ip() })
}

/// The number of a register in debug information.
fn number(register: Register) -> Option<u16> {
    use Register::{R8, R9, R10, R11, R12, R13, R14, R15, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP};
    let all = [RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15];
    (0..).zip(all).find(|(_, known)| *known == register).map(|(number, _)| number)
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    struct Code(Vec<u8>);

    impl AddressSpace for Code {
        fn read(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }

        fn code(&self, address: u64, into: &mut [u8]) -> usize {
            let code = self.0.get(address as usize - 0x1000..).unwrap_or_default();
            let count = code.len().min(into.len());
            into[..count].copy_from_slice(&code[..count]);
            count
        }
    }

    fn found(hex: &str) -> Vec<ResultPlace> {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        places(0x1000, &Code((0..hex.len()).step_by(2).map(byte).collect()))
    }

    #[test]
    fn registers_have_the_result_until_they_are_overwritten() {
        // mov rbx, rax; xor eax, eax; nop; ret
        let register = |number, at| ResultPlace::Register { number, at };
        let expected = [
            register(0, 0x1000),
            register(0, 0x1003),
            register(3, 0x1003),
            register(3, 0x1005),
            register(3, 0x1006),
        ];
        assert_eq!(found("4889c331c090c3"), expected);
    }

    #[test]
    fn the_result_is_stored_in_variables_and_on_the_stack() {
        // mov rbx, rdi; mov [rip + 0x2dd0], rax; call: what comes behind is not known.
        let stored = ResultPlace::Memory { address: 0x1003 + 7 + 0x2dd0 };
        assert!(found("4889fb488905d02d0000e800000000488945e8c3").contains(&stored));
        // mov [rbp - 0x18], rax; a part of it is not it: mov [rbp - 0x20], eax.
        let all = found("488945e88945e0c3");
        let frames: Vec<_> = all.iter().filter(|place| matches!(place, ResultPlace::Frame { .. })).collect();
        assert_eq!(frames, [&ResultPlace::Frame { offset: -0x18, at: 0x1000 }]);
        assert_eq!(found(""), []);
    }
}
