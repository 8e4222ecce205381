//! Executes one instruction on registers of which some are known. What is not modelled makes unknown what it
//! writes.

use super::address::address;
use super::flags::{self, Outcome, STATUS};
use super::instruction::Decoded;
use super::state::State;
use crate::memory::Memory;
use crate::memory::{extend, truncate};
use crate::registers::STACK_POINTER;
use iced_x86::{Mnemonic, OpKind, Register};

/// Number of rsp and rbp.
pub const RSP: u8 = STACK_POINTER as u8;
pub const RBP: u8 = 5;

/// One instruction under evaluation. Without memory, loads are unknown.
pub struct Evaluation<'s, 'm, 'a> {
    pub state: &'s mut State,
    pub memory: Option<&'m mut Memory<'a>>,
}

impl Evaluation<'_, '_, '_> {
    /// Applies the instruction to the registers; where it continues is another question.
    pub fn step(&mut self, insn: &Decoded) {
        if !self.move_data(insn) && !self.arithmetic(insn) && !self.stack(insn) && !self.other(insn) {
            self.unknown(insn);
        }
    }

    fn unknown(&mut self, insn: &Decoded) {
        let places: Vec<_> = insn.places.iter().filter(|p| p.kind != crate::AccessKind::Load).collect();
        for place in places {
            if let (Some(at), Some(memory)) = (address(place, self.state), self.memory.as_deref_mut()) {
                memory.store(at, place.size as usize, None);
            }
        }
        let mut rsp = None;
        if insn.raw.is_stack_instruction() {
            let step = i64::from(insn.raw.stack_pointer_increment()) as u64;
            rsp = self.state.get(RSP).map(|value| value.wrapping_add(step));
        }
        self.state.forget(insn.written);
        if rsp.is_some() {
            self.state.set(RSP, rsp);
        }
        if insn.writes_flags {
            self.state.flags = None;
        }
    }

    fn move_data(&mut self, insn: &Decoded) -> bool {
        let raw = &insn.raw;
        match raw.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => {
                let value = self.operand(insn, 1);
                self.write(insn, 0, value);
            }
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let value = self.operand(insn, 1).map(|v| extend(v, self.size(insn, 1)));
                self.write(insn, 0, value);
            }
            Mnemonic::Lea => {
                let value = self.lea(insn);
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
            _ if is_conditional_move(insn) => self.conditional_move(insn),
            _ if is_set(insn) => {
                let value = self.condition(insn).map(u64::from);
                self.write(insn, 0, value);
            }
            _ => return false,
        }
        true
    }

    fn arithmetic(&mut self, insn: &Decoded) -> bool {
        let size = self.size(insn, 0);
        let mnemonic = insn.raw.mnemonic();
        let two = insn.raw.op_count() == 2;
        match mnemonic {
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::And | Mnemonic::Or | Mnemonic::Xor if two => {
                let outcome = self.binary(insn, mnemonic, size);
                self.finish(insn, outcome, STATUS, true);
            }
            Mnemonic::Cmp | Mnemonic::Test if two => {
                let outcome = self.binary(insn, mnemonic, size);
                self.finish(insn, outcome, STATUS, false);
            }
            Mnemonic::Adc | Mnemonic::Sbb if two => {
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
            _ => return self.shift(insn, size) || self.multiply(insn, size) || self.count(insn, size),
        }
        true
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

    fn shift(&mut self, insn: &Decoded, size: usize) -> bool {
        let mnemonic = insn.raw.mnemonic();
        let bits = 8 * size.clamp(1, 8) as u64;
        let from = match mnemonic {
            Mnemonic::Shl | Mnemonic::Sal | Mnemonic::Shr | Mnemonic::Sar | Mnemonic::Rol | Mnemonic::Ror => {
                0
            }
            Mnemonic::Shlx | Mnemonic::Shrx | Mnemonic::Sarx | Mnemonic::Rorx => 1,
            _ => return false,
        };
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
            self.state.flags = None;
        }
        true
    }

    fn multiply(&mut self, insn: &Decoded, size: usize) -> bool {
        if insn.raw.mnemonic() != Mnemonic::Imul || insn.raw.op_count() < 2 {
            return false;
        }
        let from = insn.raw.op_count() - 2;
        let factors = self.operand(insn, from).zip(self.operand(insn, from + 1));
        let value = factors.map(|(a, b)| truncate(a.wrapping_mul(b), size));
        self.write(insn, 0, value);
        self.state.flags = None;
        true
    }

    fn count(&mut self, insn: &Decoded, size: usize) -> bool {
        let bits = 8 * size.clamp(1, 8) as u64;
        let from = if insn.raw.mnemonic() == Mnemonic::Andn { 2 } else { 1 };
        if !matches!(
            insn.raw.mnemonic(),
            Mnemonic::Popcnt
                | Mnemonic::Tzcnt
                | Mnemonic::Lzcnt
                | Mnemonic::Bsf
                | Mnemonic::Bsr
                | Mnemonic::Andn
        ) {
            return false;
        }
        let value = self.operand(insn, from).and_then(|v| match insn.raw.mnemonic() {
            Mnemonic::Popcnt => Some(u64::from(v.count_ones())),
            Mnemonic::Tzcnt => Some(u64::from(v.trailing_zeros()).min(bits)),
            Mnemonic::Lzcnt => Some(u64::from(v.leading_zeros()) - (64 - bits)),
            Mnemonic::Bsf => (v != 0).then(|| u64::from(v.trailing_zeros())),
            Mnemonic::Bsr => (v != 0).then(|| 63 - u64::from(v.leading_zeros())),
            _ => self.operand(insn, 1).map(|inverse| truncate(!inverse & v, size)),
        });
        self.write(insn, 0, value);
        self.state.flags = None;
        true
    }

    fn stack(&mut self, insn: &Decoded) -> bool {
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
            _ => return false,
        }
        true
    }

    fn push(&mut self, insn: &Decoded, value: Option<u64>) {
        let step = i64::from(insn.raw.stack_pointer_increment());
        let at = self.state.get(RSP).map(|at| at.wrapping_add(step as u64));
        self.state.set(RSP, at);
        if let (Some(at), Some(memory)) = (at, self.memory.as_deref_mut()) {
            memory.store(at, step.unsigned_abs() as usize, value);
        }
    }

    /// Instructions that change no general register and no flag that is of interest.
    fn other(&mut self, insn: &Decoded) -> bool {
        matches!(insn.raw.mnemonic(), Mnemonic::Nop | Mnemonic::Endbr64 | Mnemonic::Jmp)
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

    fn lea(&self, insn: &Decoded) -> Option<u64> {
        let raw = &insn.raw;
        if raw.is_ip_rel_memory_operand() {
            return Some(raw.ip_rel_memory_address());
        }
        let part = |register| match register {
            Register::None => Some(0),
            register => self.state.part(register),
        };
        let index = part(raw.memory_index())?.wrapping_mul(u64::from(raw.memory_index_scale()));
        let sum = part(raw.memory_base())?.wrapping_add(index).wrapping_add(raw.memory_displacement64());
        let narrow = raw.memory_base().is_gpr32() || raw.memory_index().is_gpr32();
        Some(if narrow { sum & 0xffff_ffff } else { sum })
    }

    /// Number of bytes of an operand.
    fn size(&self, insn: &Decoded, operand: u32) -> usize {
        match insn.raw.op_kind(operand.min(insn.raw.op_count().saturating_sub(1))) {
            OpKind::Register => insn.raw.op_register(operand).size(),
            OpKind::Memory => insn.raw.memory_size().size(),
            _ => 8,
        }
    }

    fn operand(&mut self, insn: &Decoded, operand: u32) -> Option<u64> {
        if operand >= insn.raw.op_count() {
            return None;
        }
        match insn.raw.op_kind(operand) {
            OpKind::Register => self.state.part(insn.raw.op_register(operand)),
            OpKind::Memory => {
                let at = self.explicit(insn)?;
                self.load(at, insn.raw.memory_size().size())
            }
            kind if is_immediate(kind) => Some(insn.raw.immediate(operand)),
            _ => None,
        }
    }

    fn explicit(&self, insn: &Decoded) -> Option<u64> {
        address(insn.places.iter().find(|place| !place.stack)?, self.state)
    }

    fn load(&mut self, at: u64, bytes: usize) -> Option<u64> {
        if bytes > 8 {
            return None;
        }
        self.memory.as_deref_mut()?.load(at, bytes)
    }

    fn write(&mut self, insn: &Decoded, operand: u32, value: Option<u64>) {
        match insn.raw.op_kind(operand) {
            OpKind::Register => self.state.set_part(insn.raw.op_register(operand), value),
            OpKind::Memory => {
                if let (Some(at), Some(memory)) = (self.explicit(insn), self.memory.as_deref_mut()) {
                    memory.store(at, insn.raw.memory_size().size(), value);
                }
            }
            _ => {}
        }
    }
}

fn rotate(value: u64, count: u64, bits: u64) -> u64 {
    if count == 0 { value } else { value << count | value >> (bits - count) }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

fn is_conditional_move(insn: &Decoded) -> bool {
    use Mnemonic as M;
    matches!(
        insn.raw.mnemonic(),
        M::Cmova
            | M::Cmovae
            | M::Cmovb
            | M::Cmovbe
            | M::Cmove
            | M::Cmovg
            | M::Cmovge
            | M::Cmovl
            | M::Cmovle
            | M::Cmovne
            | M::Cmovno
            | M::Cmovnp
            | M::Cmovns
            | M::Cmovo
            | M::Cmovp
            | M::Cmovs
    )
}

fn is_set(insn: &Decoded) -> bool {
    use Mnemonic as M;
    matches!(
        insn.raw.mnemonic(),
        M::Seta
            | M::Setae
            | M::Setb
            | M::Setbe
            | M::Sete
            | M::Setg
            | M::Setge
            | M::Setl
            | M::Setle
            | M::Setne
            | M::Setno
            | M::Setnp
            | M::Setns
            | M::Seto
            | M::Setp
            | M::Sets
    )
}
