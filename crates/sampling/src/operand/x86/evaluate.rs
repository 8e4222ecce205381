//! Executes one instruction on registers of which some are known. If an instruction is not modelled, the registers that it
//! writes become unknown.

use super::address::address;
use super::flags::{self, Outcome, STATUS};
use super::instruction::{Decoded, Place};
use super::parts::{Model, Part};
use super::state::State;
use super::vectors::KnownVectors;
use crate::operand::AccessKind;
use crate::operand::memory::Memory;
use crate::operand::memory::{extend, truncate};
use crate::operand::registers::STACK_POINTER;
use iced_x86::{Mnemonic, OpKind, Register};

/// Number of rsp and rbp.
pub const RSP: u8 = STACK_POINTER as u8;
pub const RBP: u8 = 5;

/// One instruction under evaluation. Without memory, loads are unknown.
pub struct Evaluation<'s, 'm, 'a> {
    pub state: &'s mut State,
    pub memory: Option<&'m mut Memory<'a>>,
    /// Without them, vectors are unknown.
    pub vectors: Option<&'m mut KnownVectors>,
}

impl Evaluation<'_, '_, '_> {
    /// Applies the instruction to the registers. It does not tell where the program continues.
    pub fn step(&mut self, insn: &Decoded) {
        match insn.model {
            Model::Move => self.move_data(insn),
            Model::ConditionalMove => self.conditional_move(insn),
            Model::Set => {
                let value = self.condition(insn).map(u64::from);
                self.write(insn, 0, value);
            }
            Model::Arithmetic => self.arithmetic(insn),
            Model::Stack => self.stack(insn),
            Model::Vector if self.vectors.is_some() => self.vector(insn),
            Model::Nothing => {}
            Model::Vector | Model::Unknown => self.unknown(insn),
        }
    }

    fn unknown(&mut self, insn: &Decoded) {
        for place in insn.places.iter().filter(|p| !matches!(p.kind, AccessKind::Load | AccessKind::Operand))
        {
            if let (Some(at), Some(memory)) = (address(place, self.state), self.memory.as_deref_mut()) {
                memory.store(at, place.size as usize, None);
            }
        }
        let mut rsp = None;
        if insn.raw.is_stack_instruction() {
            let step = i64::from(insn.raw.stack_pointer_increment()) as u64;
            rsp = self.state.get(RSP).map(|value| value.wrapping_add(step));
        }
        self.forget_vector(insn);
        self.state.forget(insn.written);
        if rsp.is_some() {
            self.state.set(RSP, rsp);
        }
        if insn.writes_flags {
            self.state.flags = None;
        }
    }

    fn move_data(&mut self, insn: &Decoded) {
        match insn.raw.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => {
                let value = self.operand(insn, 1);
                self.write(insn, 0, value);
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let value = self.operand(insn, 1).map(|v| extend(v, self.size(insn, 1)));
                self.write(insn, 0, value);
            }
            Mnemonic::Lea => {
                let value = self.explicit(insn);
                self.write(insn, 0, value);
            }
            Mnemonic::Cdqe => self.widen(Register::EAX, Register::RAX),
            Mnemonic::Cwde => self.widen(Register::AX, Register::EAX),
            Mnemonic::Cdq => self.spread(Register::EAX, Register::EDX),
            Mnemonic::Cqo => self.spread(Register::RAX, Register::RDX),
            Mnemonic::Xchg => {
                let (a, b) = (self.operand(insn, 0), self.operand(insn, 1));
                self.write(insn, 0, b);
                self.write(insn, 1, a);
            }
            Mnemonic::Bswap => {
                let size = self.size(insn, 0);
                let value = self.operand(insn, 0).map(|v| v.swap_bytes() >> (64 - 8 * size.clamp(1, 8)));
                self.write(insn, 0, value);
            }
            _ => self.unknown(insn),
        }
    }

    fn arithmetic(&mut self, insn: &Decoded) {
        let size = self.size(insn, 0);
        let mnemonic = insn.raw.mnemonic();
        match mnemonic {
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::And | Mnemonic::Or | Mnemonic::Xor => {
                let outcome = self.binary(insn, mnemonic, size);
                self.finish(insn, outcome, STATUS, true);
            }
            Mnemonic::Cmp | Mnemonic::Test => {
                let outcome = self.binary(insn, mnemonic, size);
                self.finish(insn, outcome, STATUS, false);
            }
            Mnemonic::Adc | Mnemonic::Sbb => {
                let outcome = self.with_carry(insn, mnemonic, size);
                self.finish(insn, outcome, STATUS, true);
            }
            Mnemonic::Inc | Mnemonic::Dec => {
                let one = |v| match mnemonic {
                    Mnemonic::Inc => flags::add(v, 1, false, size),
                    _ => flags::subtract(v, 1, false, size),
                };
                let outcome = self.operand(insn, 0).map(one);
                self.finish(insn, outcome, STATUS & !flags::CARRY, true);
            }
            Mnemonic::Neg => {
                let outcome = self.operand(insn, 0).map(|v| flags::subtract(0, v, false, size));
                self.finish(insn, outcome, STATUS, true);
            }
            Mnemonic::Not => {
                let value = self.operand(insn, 0).map(|v| !v);
                self.write(insn, 0, value);
            }
            Mnemonic::Mul | Mnemonic::Imul if insn.raw.op_count() == 1 => self.multiply_wide(insn, size),
            Mnemonic::Imul => self.multiply(insn, size),
            Mnemonic::Mulx => self.multiply_apart(insn, size),
            Mnemonic::Div | Mnemonic::Idiv => self.divide(insn, size),
            Mnemonic::Bt => self.test_bit(insn, size),
            Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar | Mnemonic::Rol | Mnemonic::Ror => {
                self.shift(insn, size, 0);
            }
            Mnemonic::Shlx | Mnemonic::Shrx | Mnemonic::Sarx | Mnemonic::Rorx => self.shift(insn, size, 1),
            _ => self.count(insn, size),
        }
    }

    fn binary(&mut self, insn: &Decoded, mnemonic: Mnemonic, size: usize) -> Option<Outcome> {
        let clears = matches!(mnemonic, Mnemonic::Xor | Mnemonic::Sub);
        if clears
            && insn.raw.op1_kind() == OpKind::Register
            && insn.raw.op0_register() == insn.raw.op1_register()
        {
            return Some(flags::logic(0, size));
        }
        let (a, b) = (self.operand(insn, 0)?, self.operand(insn, 1)?);
        Some(match mnemonic {
            Mnemonic::Add => flags::add(a, b, false, size),
            Mnemonic::Sub | Mnemonic::Cmp => flags::subtract(a, b, false, size),
            Mnemonic::Or => flags::logic(a | b, size),
            Mnemonic::Xor => flags::logic(a ^ b, size),
            _ => flags::logic(a & b, size),
        })
    }

    fn with_carry(&mut self, insn: &Decoded, mnemonic: Mnemonic, size: usize) -> Option<Outcome> {
        let carry = self.state.flags? & flags::CARRY != 0;
        let same =
            insn.raw.op1_kind() == OpKind::Register && insn.raw.op0_register() == insn.raw.op1_register();
        if mnemonic == Mnemonic::Sbb && same {
            return Some(flags::subtract(0, 0, carry, size));
        }
        let (a, b) = (self.operand(insn, 0)?, self.operand(insn, 1)?);
        Some(match mnemonic {
            Mnemonic::Adc => flags::add(a, b, carry, size),
            _ => flags::subtract(a, b, carry, size),
        })
    }

    /// Writes an outcome; `defined` are the flags that the instruction sets.
    fn finish(&mut self, insn: &Decoded, outcome: Option<Outcome>, defined: u64, writes: bool) {
        if writes {
            self.write(insn, 0, outcome.map(|o| o.value));
        }
        self.state.flags = match (outcome, self.state.flags) {
            (Some(o), Some(old)) => Some(old & !defined | o.flags & defined),
            (Some(o), None) if defined == STATUS => Some(o.flags),
            _ => None,
        };
    }

    /// Shifts the operand `from` by the operand after it.
    fn shift(&mut self, insn: &Decoded, size: usize, from: usize) {
        let mnemonic = insn.raw.mnemonic();
        let bits = 8 * size.clamp(1, 8) as u64;
        let count = self.operand(insn, from + 1).map(|v| v & if size == 8 { 63 } else { 31 });
        let value = self.operand(insn, from).zip(count).map(|(v, count)| match mnemonic {
            Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shlx => v << count,
            Mnemonic::Shr | Mnemonic::Shrx => v >> count,
            Mnemonic::Sar | Mnemonic::Sarx => ((extend(v, size) as i64) >> count) as u64,
            Mnemonic::Rol => rotate(v, count % bits, bits),
            _ => rotate(v, (bits - count % bits) % bits, bits),
        });
        self.write(insn, 0, value);
        if insn.writes_flags && count != Some(0) {
            let shifts = matches!(mnemonic, Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar);
            self.state.flags = value.filter(|_| shifts).map(|value| flags::logic(value, size).flags);
        }
    }

    fn multiply(&mut self, insn: &Decoded, size: usize) {
        let from = if insn.raw.op_count() > 2 { 1 } else { 0 };
        let factors = self.operand(insn, from).zip(self.operand(insn, from + 1));
        let value = factors.map(|(a, b)| truncate(a.wrapping_mul(b), size));
        self.write(insn, 0, value);
        self.state.flags = None;
    }

    /// rax times the operand, into rdx and rax.
    fn multiply_wide(&mut self, insn: &Decoded, size: usize) {
        let Some((low, high)) = accumulator(size) else { return self.unknown(insn) };
        let is_signed = insn.raw.mnemonic() == Mnemonic::Imul;
        let factors = self.state.part(low).zip(self.operand(insn, 0));
        let product = factors.map(|(a, b)| wide(a, size, is_signed).wrapping_mul(wide(b, size, is_signed)));
        self.state.set_part(low, product.map(|product| truncate(product as u64, size)));
        self.state.set_part(high, product.map(|product| truncate((product >> (8 * size)) as u64, size)));
        self.state.flags = None;
    }

    /// rdx times the last operand, into the other two; flags stay.
    fn multiply_apart(&mut self, insn: &Decoded, size: usize) {
        let Some((_, from)) = accumulator(size) else { return self.unknown(insn) };
        let factors = self.state.part(from).zip(self.operand(insn, 2));
        let product = factors.map(|(a, b)| wide(a, size, false).wrapping_mul(wide(b, size, false)));
        self.write(insn, 1, product.map(|product| truncate(product as u64, size)));
        self.write(insn, 0, product.map(|product| truncate((product >> (8 * size)) as u64, size)));
    }

    /// rdx and rax by the operand: the quotient into rax, the rest into rdx. A division that traps is unknown.
    fn divide(&mut self, insn: &Decoded, size: usize) {
        let Some((low, high)) = accumulator(size) else { return self.unknown(insn) };
        let is_signed = insn.raw.mnemonic() == Mnemonic::Idiv;
        let numbers = self.state.part(high).zip(self.state.part(low)).zip(self.operand(insn, 0));
        let result = numbers.and_then(|((high, low), divisor)| {
            let dividend = wide(high, size, is_signed) << (8 * size) | wide(low, size, false);
            let divisor = wide(divisor, size, is_signed);
            let (quotient, rest) = match is_signed {
                true => (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?),
                false => {
                    let (dividend, divisor) = (dividend as u128, divisor as u128);
                    (dividend.checked_div(divisor)? as i128, dividend.checked_rem(divisor)? as i128)
                }
            };
            let quotient_bits = truncate(quotient as u64, size);
            (wide(quotient_bits, size, is_signed) == quotient)
                .then_some((quotient_bits, truncate(rest as u64, size)))
        });
        let (quotient, rest) = result.unzip();
        self.state.set_part(low, quotient);
        self.state.set_part(high, rest);
        self.state.flags = None;
    }

    /// The carry flag becomes a bit of a register. In memory the bit may be far from the operand.
    fn test_bit(&mut self, insn: &Decoded, size: usize) {
        let is_register = matches!(insn.parts[0], Part::Register(_));
        let bits = self.operand(insn, 0).filter(|_| is_register).zip(self.operand(insn, 1));
        let carry = bits.map(|(value, at)| value >> (at % (8 * size.clamp(1, 8) as u64)) & flags::CARRY);
        let others = self.state.flags.unwrap_or(0) & !flags::CARRY;
        self.state.flags = carry.map(|carry| others | carry);
    }

    fn count(&mut self, insn: &Decoded, size: usize) {
        let bits = 8 * size.clamp(1, 8) as u64;
        let mnemonic = insn.raw.mnemonic();
        let from = if mnemonic == Mnemonic::Andn { 2 } else { 1 };
        let source = self.operand(insn, from);
        let value = source.and_then(|v| match mnemonic {
            Mnemonic::Popcnt => Some(u64::from(v.count_ones())),
            Mnemonic::Tzcnt => Some(u64::from(v.trailing_zeros()).min(bits)),
            Mnemonic::Lzcnt => Some(u64::from(v.leading_zeros()) - (64 - bits)),
            Mnemonic::Bsf => (v != 0).then(|| u64::from(v.trailing_zeros())),
            Mnemonic::Bsr => (v != 0).then(|| 63 - u64::from(v.leading_zeros())),
            Mnemonic::Blsr => Some(v & v.wrapping_sub(1)),
            _ => self.operand(insn, 1).map(|inverse| truncate(!inverse & v, size)),
        });
        self.write(insn, 0, value);
        let of_source = matches!(mnemonic, Mnemonic::Bsf | Mnemonic::Bsr | Mnemonic::Popcnt);
        let decides = if of_source { source } else { value };
        self.state.flags = decides.map(|decides| {
            let carries = !of_source && mnemonic != Mnemonic::Andn && source == Some(0);
            flags::logic(decides, size).flags | if carries { flags::CARRY } else { 0 }
        });
    }

    fn stack(&mut self, insn: &Decoded) {
        match insn.raw.mnemonic() {
            Mnemonic::Push => {
                let value = self.operand(insn, 0);
                self.push(insn, value);
            }
            Mnemonic::Call => self.push(insn, Some(insn.end())),
            Mnemonic::Pop => {
                let step = -i64::from(insn.raw.stack_pointer_increment());
                let at = self.state.get(RSP);
                let value = at.and_then(|at| self.load(at, step.unsigned_abs() as usize));
                self.state.set(RSP, at.map(|at| at.wrapping_sub(step as u64)));
                self.write(insn, 0, value);
            }
            Mnemonic::Ret => {
                let step = i64::from(insn.raw.stack_pointer_increment()) as u64;
                let at = self.state.get(RSP);
                self.state.set(RSP, at.map(|at| at.wrapping_add(step)));
            }
            Mnemonic::Leave => {
                let at = self.state.get(RBP);
                let value = at.and_then(|at| self.load(at, 8));
                self.state.set(RSP, at.map(|at| at.wrapping_add(8)));
                self.state.set(RBP, value);
            }
            _ => {}
        }
    }

    fn push(&mut self, insn: &Decoded, value: Option<u64>) {
        let step = i64::from(insn.raw.stack_pointer_increment());
        let at = self.state.get(RSP).map(|at| at.wrapping_add(step as u64));
        self.state.set(RSP, at);
        if let (Some(at), Some(memory)) = (at, self.memory.as_deref_mut()) {
            memory.store(at, step.unsigned_abs() as usize, value);
        }
    }

    fn widen(&mut self, from: Register, to: Register) {
        let value = self.state.part(from).map(|v| extend(v, from.size()));
        self.state.set_part(to, value);
    }

    fn spread(&mut self, from: Register, to: Register) {
        let value = self.state.part(from).map(|v| ((extend(v, from.size()) as i64) >> 63) as u64);
        self.state.set_part(to, value);
    }

    fn conditional_move(&mut self, insn: &Decoded) {
        let holds = self.condition(insn);
        let value = match holds {
            Some(true) => self.operand(insn, 1),
            Some(false) => self.operand(insn, 0),
            None => None,
        };
        self.write(insn, 0, value);
    }

    fn condition(&self, insn: &Decoded) -> Option<bool> {
        flags::fulfils(self.state.flags?, insn.raw.condition_code())
    }

    /// Number of bytes of an operand.
    fn size(&self, insn: &Decoded, operand: usize) -> usize {
        insn.parts.get(operand).map_or(8, |part| part.size())
    }

    fn operand(&mut self, insn: &Decoded, operand: usize) -> Option<u64> {
        match *insn.parts.get(operand)? {
            Part::Register(part) => self.state.read(part),
            Part::Memory(bytes) => {
                let at = self.explicit(insn)?;
                if operand == 0 && insn.explicit.is_some_and(|place| is_counter(&place)) {
                    return self.memory.as_deref_mut()?.load_updated(at, bytes.into());
                }
                self.load(at, bytes.into())
            }
            Part::Immediate(value) => Some(value),
            Part::None | Part::Other(_) => None,
        }
    }

    pub(super) fn explicit(&self, insn: &Decoded) -> Option<u64> {
        address(insn.explicit.as_ref()?, self.state)
    }

    pub(super) fn load(&mut self, at: u64, bytes: usize) -> Option<u64> {
        if bytes > 8 {
            return None;
        }
        self.memory.as_deref_mut()?.load(at, bytes)
    }

    fn write(&mut self, insn: &Decoded, operand: usize, value: Option<u64>) {
        match insn.parts.get(operand) {
            Some(Part::Register(part)) => self.state.write(*part, value),
            Some(Part::Memory(bytes)) => {
                if let (Some(at), Some(memory)) = (self.explicit(insn), self.memory.as_deref_mut()) {
                    memory.store(at, (*bytes).into(), value);
                }
            }
            _ => {}
        }
    }
}

/// The operand is written as well, and is no variable on the stack, which may count the rounds of a loop.
fn is_counter(place: &Place) -> bool {
    place.kind == AccessKind::Update && !matches!(place.base, Some(RSP | RBP))
}

/// The registers of wide products and of dividends: the lower half, then the upper one. Those of bytes are not modelled.
fn accumulator(size: usize) -> Option<(Register, Register)> {
    match size {
        2 => Some((Register::AX, Register::DX)),
        4 => Some((Register::EAX, Register::EDX)),
        8 => Some((Register::RAX, Register::RDX)),
        _ => None,
    }
}

fn wide(value: u64, size: usize, is_signed: bool) -> i128 {
    match is_signed {
        true => i128::from(extend(value, size) as i64),
        false => i128::from(truncate(value, size)),
    }
}

fn rotate(value: u64, count: u64, bits: u64) -> u64 {
    if count == 0 { value } else { value << count | value >> (bits - count) }
}
