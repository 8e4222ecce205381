//! Registers of AArch64 of which some are known.

use super::instruction::{Base, Index, Place, SP};
use crate::operand::ArmRegisters;
use yaxpeax_arm::armv8::a64::{Operand as Part, ShiftStyle, SizeCode};

/// The registers between two instructions, as far as they are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    values: [u64; 32],
    known: u32,
    /// N, Z, C and V in bits 3 to 0.
    pub flags: Option<u8>,
}

impl State {
    pub fn of(registers: &ArmRegisters) -> Self {
        let mut values = [0; 32];
        values[..31].copy_from_slice(&registers.general);
        values[usize::from(SP)] = registers.sp;
        Self { values, known: u32::MAX, flags: Some((registers.state >> 28 & 15) as u8) }
    }

    /// The value of a register, where 31 is the stack pointer.
    pub fn get(&self, number: u8) -> Option<u64> {
        (self.known >> (number & 31) & 1 == 1).then(|| self.values[usize::from(number & 31)])
    }

    pub fn set(&mut self, number: u8, value: Option<u64>) {
        let bit = 1 << (number & 31);
        match value {
            Some(value) => {
                self.values[usize::from(number & 31)] = value;
                self.known |= bit;
            }
            None => self.known &= !bit,
        }
    }

    pub fn forget(&mut self, registers: u32) {
        self.known &= !registers;
    }

    pub fn merge(&mut self, other: &Self) {
        for number in 0..32 {
            if self.get(number).is_none() {
                self.set(number, other.get(number));
            }
        }
        self.flags = self.flags.or(other.flags);
    }

    /// The value of an operand that is no memory.
    pub fn value(&self, part: &Part) -> Option<u64> {
        match *part {
            Part::Register(_, 31) => Some(0),
            Part::Register(size, number) | Part::RegisterOrSP(size, number) => {
                self.get(number as u8).map(|value| narrow(value, size))
            }
            Part::Immediate(value) => Some(u64::from(value)),
            Part::Imm64(value) => Some(value),
            Part::Imm16(value) => Some(u64::from(value)),
            Part::ImmShift(value, shift) => Some(u64::from(value).checked_shl(u32::from(shift)).unwrap_or(0)),
            Part::RegShift(style, shift, size, number) => {
                let value = if number == 31 { 0 } else { self.get(number as u8)? };
                Some(shifted(narrow(value, size), style, shift, size == SizeCode::W))
            }
            _ => None,
        }
    }

    /// Writes the result of an instruction; 4 bytes clear the upper half.
    pub fn write(&mut self, part: &Part, value: Option<u64>) {
        match *part {
            Part::Register(_, 31) => {}
            Part::Register(size, number) | Part::RegisterOrSP(size, number) => {
                self.set(number as u8, value.map(|value| narrow(value, size)));
            }
            _ => {}
        }
    }
}

fn narrow(value: u64, size: SizeCode) -> u64 {
    if size == SizeCode::W { value & 0xffff_ffff } else { value }
}

/// A value extended or shifted as an operand asks for.
fn shifted(value: u64, style: ShiftStyle, shift: u8, is_narrow: bool) -> u64 {
    let count = u32::from(shift) % 64;
    match style {
        ShiftStyle::LSL | ShiftStyle::UXTX => value << count,
        ShiftStyle::LSR => value >> count,
        ShiftStyle::ASR if is_narrow => (value as u32 as i32 >> (count % 32)) as u32 as u64,
        ShiftStyle::ASR => (value as i64 >> count) as u64,
        ShiftStyle::ROR if is_narrow => u64::from((value as u32).rotate_right(count)),
        ShiftStyle::ROR => value.rotate_right(count),
        ShiftStyle::UXTB => u64::from(value as u8) << count,
        ShiftStyle::UXTH => u64::from(value as u16) << count,
        ShiftStyle::UXTW => u64::from(value as u32) << count,
        ShiftStyle::SXTB => (i64::from(value as i8) as u64) << count,
        ShiftStyle::SXTH => (i64::from(value as i16) as u64) << count,
        ShiftStyle::SXTW => (i64::from(value as i32) as u64) << count,
        ShiftStyle::SXTX => value << count,
    }
}

/// The address of an operand, if the registers for it are known.
pub fn address(place: &Place, state: &State) -> Option<u64> {
    let base = match place.base {
        Base::Register(number) => state.get(number)?,
        Base::Address(address) => address,
    };
    let index = match place.index {
        Some(Index { register: 31, .. }) | None => 0,
        Some(Index { register, style, narrow: is_narrow, shift }) => {
            shifted(state.get(register)?, style, shift, is_narrow)
        }
    };
    Some(base.wrapping_add(place.offset as u64).wrapping_add(index))
}
