//! Code and registers of an interrupted thread.

use numakit_sampling::argument_flow::{self, ArgumentOrigin, Arguments};
use numakit_sampling::operand::{
    AddressSpace, ArmDecoder, ArmRegisters, Decoder, Landing, Operand, Reach, X86Registers,
};

/// Where the code starts.
const START: u64 = 0x40_0000;
/// Bytes of the input that are registers.
const HEAD: usize = 8 * 18;

/// Memory of which every address outside the code has a value, and some cannot be read.
struct Bytes<'a>(&'a [u8]);

impl AddressSpace for Bytes<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        for (byte, at) in into.iter_mut().zip(0u64..) {
            let at = address.wrapping_add(at);
            *byte =
                if at % 64 < 32 { self.0.get((at % 512) as usize).copied().unwrap_or(at as u8) } else { 0 };
        }
        !address.is_multiple_of(7)
    }

    fn code(&self, address: u64, into: &mut [u8]) -> usize {
        let code = self.0.get(HEAD..).unwrap_or_default();
        let from = address.checked_sub(START).and_then(|at| usize::try_from(at).ok());
        let there = from.and_then(|at| code.get(at..)).unwrap_or_default();
        let count = there.len().min(into.len());
        into[..count].copy_from_slice(&there[..count]);
        count
    }

    fn changes(&self, _: u64) -> bool {
        !self.0.len().is_multiple_of(2)
    }
}

fn word(input: &[u8], at: usize) -> u64 {
    let bytes = input.get(8 * at..8 * at + 8).and_then(|b| b.try_into().ok());
    bytes.map(u64::from_le_bytes).unwrap_or_default()
}

/// Whatever the bytes are: an address that is known belongs to an instruction of the code, and the loop ahead
/// ends.
pub fn x86(input: &[u8]) -> bool {
    let mut general = [0; 16];
    for (at, register) in general.iter_mut().enumerate() {
        *register = word(input, at);
    }
    let span = input.len().saturating_sub(HEAD) as u64 + 1;
    let ip = match word(input, 16) {
        far if far.is_multiple_of(16) => far,
        near => START + near % span,
    };
    let registers =
        X86Registers { general, ip, flags: word(input, 17), fs_base: Some(general[0]), gs_base: None };
    let space = Bytes(input);
    let mut decoder = Decoder::default();
    let mut accepted = false;
    for landing in [Landing::Behind, Landing::OneFurther, Landing::BlockStart] {
        let found = decoder.recover(&registers, &space, landing);
        assert_eq!(decoder.recover(&registers, &space, landing), found);
        if let Operand::Memory(access) = found {
            accepted = true;
            assert!((START..START + span).contains(&access.instruction), "{access:x?}");
        }
    }
    for reach in [Reach::NEAR, Reach::to_next(START)] {
        let ahead = decoder.ahead(&registers, &space, reach);
        assert!(ahead.instructions <= reach.instructions && ahead.accesses.len() < 6000);
    }
    // The same code as a function that calls, or jumps to another one.
    let first = Arguments::at(&[0]);
    if let ArgumentOrigin::PassedOn(arguments) = argument_flow::origin(START, ip, first, &space) {
        assert_ne!(arguments, Arguments::default());
    }
    let function = START..ip;
    let jump = argument_flow::tail_jump(function.clone(), &|to| !function.contains(&to), &space);
    assert!(jump.is_none_or(|after| after <= ip));
    argument_flow::called(ip, &space);
    decoder.forget(ip.saturating_sub(1)..ip);
    decoder.forget(0..u64::MAX);
    accepted
}

/// The same for AArch64.
pub fn arm(input: &[u8]) -> bool {
    let mut general = [0; 31];
    for (at, register) in general.iter_mut().enumerate() {
        *register = word(input, at % 16);
    }
    let span = input.len().saturating_sub(HEAD) as u64 + 1;
    let pc = START + word(input, 16) % span / 4 * 4;
    let registers = ArmRegisters { general, sp: word(input, 4), pc, state: word(input, 17) };
    let space = Bytes(input);
    let mut decoder = ArmDecoder::default();
    let mut accepted = false;
    for landing in [Landing::Behind, Landing::OneFurther, Landing::BlockStart] {
        let found = decoder.recover(&registers, &space, landing);
        assert_eq!(decoder.recover(&registers, &space, landing), found);
        if let Operand::Memory(access) = found {
            accepted = true;
            assert!((START..START + span).contains(&access.instruction), "{access:x?}");
        }
    }
    assert!(decoder.ahead(&registers, &space, Reach::NEAR).accesses.len() < 3000);
    decoder.recover(&ArmRegisters { pc: word(input, 16), ..registers }, &space, Landing::Behind);
    decoder.forget(0..u64::MAX);
    accepted
}
