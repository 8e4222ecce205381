//! From the registers after an instruction to those before it, as far as they can be told.

use super::address::address;
use super::evaluate::{RBP, RSP};
use super::flags::DIRECTION;
use super::instruction::{Decoded, general};
use super::state::State;
use crate::operand::memory::Memory;
use iced_x86::{Mnemonic, OpKind, Register};

/// The registers before an instruction. With memory, values that the instruction stored are read back; `after` gets what the
/// instruction implies about it.
pub fn undo(insn: &Decoded, after: &mut State, memory: Option<&mut Memory<'_>>) -> State {
    deduce(insn, after, memory);
    let mut before = *after;
    before.forget(insn.written);
    if insn.writes_flags {
        before.flags = None;
    }
    if insn.string {
        string(insn, after, &mut before);
        return before;
    }
    if let Some((number, value)) = inverse(insn, after) {
        before.set(number, value);
    }
    stack(insn, after, &mut before);
    before
}

/// Adds to `after` what the instruction says about registers that have the same value before and after it.
fn deduce(insn: &Decoded, after: &mut State, memory: Option<&mut Memory<'_>>) {
    let raw = &insn.raw;
    let whole = |operand: u32| -> Option<u8> {
        let register = (raw.op_kind(operand) == OpKind::Register).then(|| raw.op_register(operand))?;
        if register.is_gpr64() { general(register) } else { None }
    };
    match raw.mnemonic() {
        Mnemonic::Mov if raw.op_count() == 2 => {
            let Some(from) = whole(1) else { return };
            if after.get(from).is_some() {
                return;
            }
            if let Some(to) = whole(0) {
                after.set(from, after.get(to));
            } else if let (OpKind::Memory, Some(memory)) = (raw.op0_kind(), memory) {
                let at = insn.places.first().and_then(|place| address(place, after));
                after.set(from, at.and_then(|at| memory.load(at, 8)));
            }
        }
        Mnemonic::Push => {
            if let (Some(from), Some(memory)) = (whole(0), memory)
                && after.get(from).is_none()
            {
                let value = after.get(RSP).and_then(|at| memory.load(at, 8));
                after.set(from, value);
            }
        }
        Mnemonic::Lea => {
            let (Some(to), Some(base)) = (whole(0), base_of_sum(insn)) else { return };
            if to != base && after.get(base).is_none() {
                after.set(base, without_rest(insn, after, after.get(to)));
            }
        }
        _ => {}
    }
}

/// The base of `lea r, [base + ...]` in 64 bits.
fn base_of_sum(insn: &Decoded) -> Option<u8> {
    let base = insn.raw.memory_base();
    if base.is_gpr64() && base != insn.raw.memory_index() { general(base) } else { None }
}

/// The base of a sum.
fn without_rest(insn: &Decoded, state: &State, sum: Option<u64>) -> Option<u64> {
    let index = match insn.raw.memory_index() {
        Register::None => 0,
        register if register != insn.raw.op0_register() => state.part(register)?,
        _ => return None,
    };
    let index = index.wrapping_mul(u64::from(insn.raw.memory_index_scale()));
    Some(sum?.wrapping_sub(index).wrapping_sub(insn.raw.memory_displacement64()))
}

/// The register that the instruction changed in a way that can be inverted, and its old value.
fn inverse(insn: &Decoded, after: &State) -> Option<(u8, Option<u64>)> {
    let raw = &insn.raw;
    if raw.op_count() == 0 || raw.op0_kind() != OpKind::Register || !raw.op0_register().is_gpr64() {
        return None;
    }
    let number = general(raw.op0_register())?;
    let new = after.get(number);
    let other = || match raw.op_kind(1) {
        OpKind::Register if raw.op1_register() != raw.op0_register() => after.part(raw.op1_register()),
        OpKind::Immediate8to64 | OpKind::Immediate32to64 => Some(raw.immediate(1)),
        _ => None,
    };
    let old = match raw.mnemonic() {
        Mnemonic::Add => new.zip(other()).map(|(new, by)| new.wrapping_sub(by)),
        Mnemonic::Sub => new.zip(other()).map(|(new, by)| new.wrapping_add(by)),
        Mnemonic::Xor => new.zip(other()).map(|(new, by)| new ^ by),
        Mnemonic::Inc => new.map(|new| new.wrapping_sub(1)),
        Mnemonic::Dec => new.map(|new| new.wrapping_add(1)),
        Mnemonic::Neg => new.map(u64::wrapping_neg),
        Mnemonic::Not => new.map(|new| !new),
        Mnemonic::Bswap => new.map(u64::swap_bytes),
        Mnemonic::Lea if base_of_sum(insn) == Some(number) => without_rest(insn, after, new),
        Mnemonic::Xchg if raw.op1_kind() == OpKind::Register => after.part(raw.op1_register()),
        _ => return None,
    };
    Some((number, old))
}

fn stack(insn: &Decoded, after: &State, before: &mut State) {
    let raw = &insn.raw;
    let rsp = after.get(RSP);
    match raw.mnemonic() {
        Mnemonic::Leave => before.set(RBP, rsp.map(|at| at.wrapping_sub(8))),
        Mnemonic::Pop if raw.op0_kind() == OpKind::Register && general(raw.op0_register()) == Some(RSP) => {}
        Mnemonic::Xchg if raw.op_count() == 2 && raw.op1_kind() == OpKind::Register => {
            // The first operand's old value is already there; the second operand's old value is the first one's new value.
            if raw.op0_kind() == OpKind::Register
                && raw.op0_register().is_gpr64()
                && let Some(number) = general(raw.op1_register())
            {
                before.set(number, after.part(raw.op0_register()));
            }
        }
        _ if raw.is_stack_instruction() => {
            let step = i64::from(raw.stack_pointer_increment()) as u64;
            before.set(RSP, rsp.map(|at| at.wrapping_sub(step)));
        }
        _ => {}
    }
}

/// Undoes a string instruction. Its pointers moved by one element; for a repeated instruction, only the last element counts.
fn string(insn: &Decoded, after: &State, before: &mut State) {
    let down = after.flags.is_some_and(|flags| flags & DIRECTION != 0);
    for place in &insn.places {
        let Some(number) = place.base else { continue };
        let step = u64::from(place.size);
        let old = after.get(number).map(|v| if down { v.wrapping_add(step) } else { v.wrapping_sub(step) });
        before.set(number, old);
    }
}
