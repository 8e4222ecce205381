//! Vector registers, as far as they lead to an address: hash tables compare the control bytes of a group at once and take the
//! place of an entry from the result.

use super::aes;
use super::evaluate::Evaluation;
use super::instruction::Decoded;
use iced_x86::{Mnemonic, OpKind, Register};

const REGISTERS: usize = 16;
const HALF: u64 = 8;

/// The lower 128 bits of the first 16 vector registers. At first none is known: samples have no vector registers.
#[derive(Debug, Clone, Default)]
pub struct KnownVectors([Option<u128>; REGISTERS]);

impl KnownVectors {
    fn get(&self, register: Register) -> Option<u128> {
        place(register).filter(|_| register.is_xmm()).and_then(|at| self.0[at])
    }

    fn set(&mut self, register: Register, value: Option<u128>) {
        place(register).into_iter().for_each(|at| self.0[at] = value);
    }
}

fn place(register: Register) -> Option<usize> {
    let is_vector = register.is_xmm() || register.is_ymm() || register.is_zmm();
    Some(register.number()).filter(|at| is_vector && *at < REGISTERS)
}

/// Whether an instruction is one of those that are followed.
pub fn is_followed(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(mnemonic, M::Movd | M::Movq | M::Movdqa | M::Movdqu | M::Movaps | M::Movups)
        || matches!(mnemonic, M::Pxor | M::Por | M::Pand | M::Pandn | M::Xorps | M::Pcmpeqb | M::Pcmpeqd)
        || matches!(mnemonic, M::Punpcklbw | M::Pshuflw | M::Pshufd | M::Pmovmskb)
        || matches!(mnemonic, M::Aesenc | M::Pinsrd | M::Pinsrq)
}

impl Evaluation<'_, '_, '_> {
    /// Executes an instruction on vectors. Its result is unknown where its operands are.
    pub(super) fn vector(&mut self, insn: &Decoded) {
        let value = self.vector_result(insn);
        let to = insn.raw.op0_register();
        match insn.raw.op0_kind() {
            OpKind::Register if to.is_gpr() => self.state.set_part(to, value.map(|value| value as u64)),
            OpKind::Register => self.set_vector(to, value),
            OpKind::Memory => self.store_vector(insn, value),
            _ => {}
        }
    }

    /// Forgets the vector that an instruction writes which is not followed.
    pub(super) fn forget_vector(&mut self, insn: &Decoded) {
        if insn.raw.op_count() > 0 && insn.raw.op0_kind() == OpKind::Register {
            self.set_vector(insn.raw.op0_register(), None);
        }
    }

    fn set_vector(&mut self, register: Register, value: Option<u128>) {
        self.vectors.as_deref_mut().into_iter().for_each(|vectors| vectors.set(register, value));
    }

    fn vector_result(&mut self, insn: &Decoded) -> Option<u128> {
        let raw = &insn.raw;
        let is_same = raw.op1_kind() == OpKind::Register && raw.op0_register() == raw.op1_register();
        match raw.mnemonic() {
            Mnemonic::Pxor | Mnemonic::Xorps if is_same => return Some(0),
            Mnemonic::Pcmpeqb | Mnemonic::Pcmpeqd if is_same => return Some(u128::MAX),
            _ => {}
        }
        let from = self.vector_operand(insn, 1)?;
        let to = || self.vectors.as_ref()?.get(raw.op0_register());
        Some(match raw.mnemonic() {
            Mnemonic::Movd => u128::from(from as u32),
            Mnemonic::Movq => u128::from(from as u64),
            Mnemonic::Pxor | Mnemonic::Xorps => to()? ^ from,
            Mnemonic::Por => to()? | from,
            Mnemonic::Pand => to()? & from,
            Mnemonic::Pandn => !to()? & from,
            Mnemonic::Pcmpeqb => equal::<1>(to()?, from),
            Mnemonic::Pcmpeqd => equal::<4>(to()?, from),
            Mnemonic::Aesenc => aes::round(to()?, from),
            Mnemonic::Pinsrd => inserted(to()?, from, 32, raw.immediate8() & 3),
            Mnemonic::Pinsrq => inserted(to()?, from, 64, raw.immediate8() & 1),
            Mnemonic::Punpcklbw => interleaved(to()?, from),
            Mnemonic::Pshufd => shuffled(from, u32::from(raw.immediate8()), 32, 0),
            Mnemonic::Pshuflw => shuffled(from, u32::from(raw.immediate8()), 16, from >> 64 << 64),
            Mnemonic::Pmovmskb => {
                let bits = from.to_le_bytes().into_iter().map(|byte| u128::from(byte >> 7));
                bits.zip(0..).fold(0, |mask, (bit, at)| mask | bit << at)
            }
            _ => from,
        })
    }

    fn vector_operand(&mut self, insn: &Decoded, operand: u32) -> Option<u128> {
        let register = insn.raw.op_register(operand);
        match insn.raw.op_kind(operand) {
            OpKind::Register if register.is_gpr() => self.state.part(register).map(u128::from),
            OpKind::Register => self.vectors.as_ref()?.get(register),
            OpKind::Memory => {
                let at = self.explicit(insn)?;
                let bytes = insn.raw.memory_size().size();
                let low = self.load(at, bytes.min(HALF as usize)).map(u128::from)?;
                let high = match bytes {
                    16 => self.load(at.wrapping_add(HALF), HALF as usize).map(u128::from)?,
                    _ => 0,
                };
                Some(high << 64 | low)
            }
            _ => None,
        }
    }

    fn store_vector(&mut self, insn: &Decoded, value: Option<u128>) {
        let (Some(at), Some(memory)) = (self.explicit(insn), self.memory.as_deref_mut()) else { return };
        let bytes = insn.raw.memory_size().size();
        memory.store(at, bytes.min(HALF as usize), value.map(|value| value as u64));
        if bytes == 16 {
            memory.store(at.wrapping_add(HALF), HALF as usize, value.map(|value| (value >> 64) as u64));
        }
    }
}

/// All bits of those elements that are equal.
fn equal<const BYTES: usize>(a: u128, b: u128) -> u128 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    let mut result = [0; 16];
    let pairs = a.chunks_exact(BYTES).zip(b.chunks_exact(BYTES));
    for (element, (a, b)) in result.chunks_exact_mut(BYTES).zip(pairs) {
        element.fill(if a == b { 0xff } else { 0 });
    }
    u128::from_le_bytes(result)
}

/// A vector with the lowest bits of a value in place of one of its elements of as many bits.
fn inserted(to: u128, value: u128, bits: u32, at: u8) -> u128 {
    let (mask, shift) = ((1 << bits) - 1, bits * u32::from(at));
    to & !(mask << shift) | (value & mask) << shift
}

/// The lower bytes of both, in turn.
fn interleaved(a: u128, b: u128) -> u128 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes()).take(8);
    pairs
        .zip(0..)
        .fold(0, |all, ((a, b), at)| all | u128::from(a) << (16 * at) | u128::from(b) << (16 * at + 8))
}

/// Four elements of this many bits, each chosen by two bits of the order, and the bits above them.
fn shuffled(from: u128, order: u32, bits: u32, above: u128) -> u128 {
    let mask = (1 << bits) - 1;
    (0..4).fold(above, |all, at| all | (from >> (bits * (order >> (2 * at) & 3)) & mask) << (bits * at))
}
