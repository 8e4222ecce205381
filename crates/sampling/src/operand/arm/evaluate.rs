//! Executes one instruction, or undoes it, on registers of which some are known.

use super::instruction::{Base, Decoded, Place, Writeback};
use super::state::{State, address};
use crate::operand::AccessKind;
use crate::operand::memory::{Memory, extend};
use yaxpeax_arm::armv8::a64::{Opcode, Operand as Part, SizeCode};

/// Applies an instruction to the registers. If an instruction is not modelled, the registers that it writes become unknown.
pub fn step(insn: &Decoded, state: &mut State, memory: Option<&mut Memory<'_>>) {
    let parts = &insn.raw.operands;
    let value = match insn.place {
        Some(place) => load(insn, &place, state, memory),
        None => result(insn, state),
    };
    let flags = match insn.raw.opcode {
        Opcode::SUBS => compared(parts, state),
        _ => None,
    };
    let moved = insn.place.and_then(|place| written_back(&place, state));
    state.forget(insn.written);
    if insn.place.is_some() {
        if value.is_some() {
            state.write(&parts[0], value);
        }
        if let Some((base, value)) = moved {
            state.set(base, value);
        }
    } else if value.is_some() {
        state.write(&parts[0], value);
    }
    if matches!(
        insn.raw.opcode,
        Opcode::SUBS | Opcode::ADDS | Opcode::ANDS | Opcode::CCMP | Opcode::CCMN | Opcode::FCMP
    ) {
        state.flags = flags;
    }
}

/// The base after the access.
fn written_back(place: &Place, state: &State) -> Option<(u8, Option<u64>)> {
    let Base::Register(base) = place.base else { return None };
    let by = match place.writeback? {
        Writeback::Immediate(by) => Some(by as u64),
        Writeback::Register(register) => state.get(register),
    };
    Some((base, state.get(base).zip(by).map(|(old, by)| old.wrapping_add(by))))
}

/// What a load of one general register reads.
fn load(insn: &Decoded, place: &Place, state: &State, memory: Option<&mut Memory<'_>>) -> Option<u64> {
    let Part::Register(size, _) = insn.raw.operands[0] else { return None };
    let single = !matches!(insn.raw.operands[1], Part::Register(..));
    if place.kind != AccessKind::Load || !single || place.size > 8 {
        return None;
    }
    let at = address(place, state)?;
    let value = memory?.load(at, place.size as usize)?;
    let signed = format!("{:?}", insn.raw.opcode).contains("RS");
    let wide = if signed { extend(value, place.size as usize) } else { value };
    Some(if size == SizeCode::W { wide & 0xffff_ffff } else { wide })
}

fn result(insn: &Decoded, state: &State) -> Option<u64> {
    let parts = &insn.raw.operands;
    let value = |at: usize| state.value(&parts[at]);
    match insn.raw.opcode {
        Opcode::MOVZ => value(1),
        Opcode::MOVN => value(1).map(|v| !v),
        Opcode::MOVK => {
            let Part::ImmShift(new, shift) = parts[1] else { return None };
            let shift = u32::from(shift) % 64;
            value(0).map(|old| old & !(0xffff << shift) | u64::from(new) << shift)
        }
        Opcode::ADD => Some(value(1)?.wrapping_add(value(2)?)),
        Opcode::SUB | Opcode::SUBS => Some(value(1)?.wrapping_sub(value(2)?)),
        Opcode::AND | Opcode::ANDS => Some(value(1)? & value(2)?),
        Opcode::ORR => Some(value(1)? | value(2)?),
        Opcode::EOR => Some(value(1)? ^ value(2)?),
        Opcode::MADD => Some(value(1)?.wrapping_mul(value(2)?).wrapping_add(value(3)?)),
        Opcode::UBFM | Opcode::SBFM => bitfield(insn, state),
        Opcode::ADR | Opcode::ADRP => {
            let Part::PCOffset(offset) = parts[1] else { return None };
            let from = if insn.raw.opcode == Opcode::ADRP { insn.address & !0xfff } else { insn.address };
            Some(from.wrapping_add(offset as u64))
        }
        _ => None,
    }
}

/// Shifts and extensions by constants.
fn bitfield(insn: &Decoded, state: &State) -> Option<u64> {
    let parts = &insn.raw.operands;
    let Part::Register(size, _) = parts[0] else { return None };
    let (value, rotate, last) = (state.value(&parts[1])?, state.value(&parts[2])?, state.value(&parts[3])?);
    let bits = if size == SizeCode::W { 32 } else { 64 };
    if rotate >= bits || last >= bits {
        return None;
    }
    let signed = insn.raw.opcode == Opcode::SBFM;
    let (width, down, up) =
        if last >= rotate { (last - rotate + 1, rotate, 0) } else { (last + 1, 0, bits - rotate) };
    let field = (value >> down) << (64 - width);
    let field = if signed { (field as i64 >> (64 - width)) as u64 } else { field >> (64 - width) };
    Some(field << up)
}

/// The flags of a comparison.
fn compared(parts: &[Part; 4], state: &State) -> Option<u8> {
    let (a, b) = (state.value(&parts[1])?, state.value(&parts[2])?);
    let wide = match parts[0] {
        Part::Register(size, _) => size == SizeCode::X,
        _ => return None,
    };
    let (a, b) = if wide { (a, b) } else { (a << 32, b << 32) };
    let difference = a.wrapping_sub(b);
    let overflow = (a ^ b) & (a ^ difference);
    let bit = |set: bool, at: u8| u8::from(set) << at;
    Some(
        bit(difference >> 63 == 1, 3)
            | bit(difference == 0, 2)
            | bit(a >= b, 1)
            | bit(overflow >> 63 == 1, 0),
    )
}

/// Whether flags fulfil a condition of four bits.
pub fn fulfils(flags: u8, condition: u8) -> bool {
    let (n, z, c, v) = (flags & 8 != 0, flags & 4 != 0, flags & 2 != 0, flags & 1 != 0);
    let holds = match condition >> 1 & 7 {
        0 => z,
        1 => c,
        2 => n,
        3 => v,
        4 => c && !z,
        5 => n == v,
        6 => n == v && !z,
        _ => return true,
    };
    holds != (condition & 1 == 1)
}

/// The registers before an instruction. With memory, values that the instruction stored are read back; `after` gets what the
/// instruction implies about it.
pub fn undo(insn: &Decoded, after: &mut State, memory: Option<&mut Memory<'_>>) -> State {
    let parts = &insn.raw.operands;
    let mut before = *after;
    before.forget(insn.written);
    if let Some(place) = insn.place {
        if let (Base::Register(base), Some(by)) = (place.base, place.writeback) {
            let by = match by {
                Writeback::Immediate(by) => Some(by as u64),
                Writeback::Register(register) => after.get(register),
            };
            before.set(base, after.get(base).zip(by).map(|(new, by)| new.wrapping_sub(by)));
        }
        if let (AccessKind::Store, Part::Register(SizeCode::X, number @ 0..31), Some(memory), 8) =
            (place.kind, parts[0], memory, place.size)
            && after.get(number as u8).is_none()
        {
            let stored = address(&place, &before).and_then(|at| memory.load(at, 8));
            after.set(number as u8, stored);
            before.set(number as u8, stored);
        }
        return before;
    }
    let register = |part: &Part| match *part {
        Part::Register(SizeCode::X, n @ 0..31) | Part::RegisterOrSP(SizeCode::X, n @ 0..32) => Some(n as u8),
        _ => None,
    };
    if let (Opcode::ADD | Opcode::SUB, Some(to), Some(from)) =
        (insn.raw.opcode, register(&parts[0]), register(&parts[1]))
        && before.get(from).is_none()
    {
        let sum = after.get(to).zip(before.value(&parts[2]));
        let old = sum.map(|(sum, by)| match insn.raw.opcode {
            Opcode::ADD => sum.wrapping_sub(by),
            _ => sum.wrapping_add(by),
        });
        before.set(from, old);
    }
    // A copy: `orr to, xzr, from`.
    if let (Opcode::ORR, Some(to), Part::Register(_, 31), Part::RegShift(_, 0, SizeCode::X, from @ 0..31)) =
        (insn.raw.opcode, register(&parts[0]), parts[1], parts[2])
        && before.get(from as u8).is_none()
    {
        before.set(from as u8, after.get(to));
        after.set(from as u8, after.get(to));
    }
    before
}
