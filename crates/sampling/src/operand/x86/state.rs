//! Registers of which some are known, and their parts.

use super::parts::RegisterPart;
use crate::operand::X86Registers;
use crate::operand::memory::truncate;
use iced_x86::Register;

/// A set of general registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegisterSet(u16);

impl RegisterSet {
    pub const ALL: Self = Self(u16::MAX);

    pub fn with(self, number: u8) -> Self {
        Self(self.0 | 1 << (number & 15))
    }

    pub fn has(self, number: u8) -> bool {
        self.0 & 1 << (number & 15) != 0
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }
}

/// The registers between two instructions, as far as they are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    values: [u64; 16],
    pub known: RegisterSet,
    pub flags: Option<u64>,
    pub fs_base: Option<u64>,
    pub gs_base: Option<u64>,
}

impl State {
    /// A state in which all registers are known.
    pub fn of(registers: &X86Registers) -> Self {
        Self {
            values: registers.general,
            known: RegisterSet::ALL,
            flags: Some(registers.flags),
            fs_base: registers.fs_base,
            gs_base: registers.gs_base,
        }
    }

    pub fn get(&self, number: u8) -> Option<u64> {
        self.known.has(number).then(|| self.values[usize::from(number & 15)])
    }

    pub fn set(&mut self, number: u8, value: Option<u64>) {
        match value {
            Some(value) => {
                self.values[usize::from(number & 15)] = value;
                self.known = self.known.with(number);
            }
            None => self.known = self.known.without(RegisterSet::default().with(number)),
        }
    }

    pub fn forget(&mut self, registers: RegisterSet) {
        self.known = self.known.without(registers);
    }

    /// Adds what a second state of the same moment knows.
    pub fn merge(&mut self, other: &Self) {
        for number in 0..16 {
            if !self.known.has(number) && other.known.has(number) {
                self.set(number, other.get(number));
            }
        }
        self.flags = self.flags.or(other.flags);
    }

    /// The value of a register of any width.
    pub fn part(&self, register: Register) -> Option<u64> {
        self.read(RegisterPart::of(register)?)
    }

    /// Writes a register of any width.
    pub fn set_part(&mut self, register: Register, value: Option<u64>) {
        if let Some(part) = RegisterPart::of(register) {
            self.write(part, value);
        }
    }

    /// The value of a part of a register.
    pub fn read(&self, part: RegisterPart) -> Option<u64> {
        let full = self.get(part.number)?;
        Some(if part.high { full >> 8 & 0xff } else { truncate(full, part.size.into()) })
    }

    /// Writes a part: 4 bytes clear the upper half, fewer keep the rest.
    pub fn write(&mut self, part: RegisterPart, value: Option<u64>) {
        let whole = match (part.size, value) {
            (8, value) => value,
            (4, value) => value.map(|v| truncate(v, 4)),
            (size, Some(value)) => self.get(part.number).map(|old| {
                let (mask, shift) =
                    if part.high { (0xff00, 8) } else { (truncate(u64::MAX, size.into()), 0) };
                old & !mask | value << shift & mask
            }),
            (_, None) => None,
        };
        self.set(part.number, whole);
    }
}
