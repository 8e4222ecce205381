//! AArch64. Instructions have one length, and no instruction that accesses memory is also a jump: the one before
//! the sample is known unless control jumped there.

mod evaluate;
mod instruction;
mod state;

use crate::operand::memory::Memory;
use crate::operand::{
    AccessKind, AddressSpace, Ahead, ArmRegisters, Landing, MemoryAccess, Operand, Reach, RecoveryRule,
};
use evaluate::{fulfils, step, undo};
use instruction::{Base, Decoded, Flow, LENGTH, Place, SP};
use state::{State, address};
use std::collections::HashMap;
use std::ops::Range;
use yaxpeax_arm::armv8::a64::{Opcode, Operand as Part};

/// Maximum number of instructions that are kept. When there are more, all are dropped.
const MAX_DECODED: usize = 200_000;
/// Instructions that a slice goes back.
const DEPTH: u64 = 24;
/// Instructions that are executed to find the next execution of one.
const MAX_TO_NEXT: usize = 200;
const LOADS: u32 = 40;
/// Bytes around the sample in which jumps to it are looked for.
const REACH: u64 = 4096;

/// Finds the memory operands of AArch64 instructions. One for each observed address space: it keeps decoded code
/// by address.
#[derive(Debug, Default)]
pub struct ArmDecoder {
    decoded: HashMap<u64, Option<Decoded>>,
    labels: HashMap<u64, bool>,
    accesses: Vec<MemoryAccess>,
}

impl ArmDecoder {
    /// The operand that the thread waited for when it was interrupted.
    pub fn recover(
        &mut self,
        registers: &ArmRegisters,
        space: &dyn AddressSpace,
        landing: Landing,
    ) -> Operand {
        let state = State::of(registers);
        let nothing = Operand::Unknown { instruction: registers.pc, kind: None };
        let back = match landing {
            Landing::Behind => 1,
            Landing::OneFurther => 2,
            Landing::BlockStart | Landing::Other => return nothing,
        };
        let Some(path) = self.path(registers.pc, space) else { return nothing };
        let Some(insn) = path.get(back - 1) else {
            // Behind a jump, it is not known what was executed before it; the jump itself waits for nothing.
            return if back == 1 { Operand::Computing } else { nothing };
        };
        if back == 1 && self.jumped_here(insn, &state, registers.pc, space) {
            return Operand::Computing;
        }
        match insn.place {
            Some(place) => self.operand(&path, back - 1, &place, &state, registers.pc, space),
            None if insn.is_strange() => Operand::Unknown { instruction: insn.address, kind: None },
            None => Operand::Computing,
        }
    }

    /// The operands with known addresses of the instructions that the thread executes next: up to a call or return, and no
    /// further than `reach` allows.
    pub fn ahead(&mut self, registers: &ArmRegisters, space: &dyn AddressSpace, reach: Reach) -> Ahead<'_> {
        let (mut state, mut memory) = (State::of(registers), Memory::in_lines(space, reach.reads));
        let mut found = std::mem::take(&mut self.accesses);
        found.clear();
        let (mut at, mut instructions, mut left) = (registers.pc, 0, reach.executions);
        while instructions < reach.instructions && left > 0 && !memory.is_spent() {
            let Some(insn) = self.at(at, space) else { break };
            if let Some((place, address)) = insn.place.and_then(|p| address(&p, &state).map(|at| (p, at))) {
                found.push(access(&insn, &place, address, RecoveryRule::Direct));
            }
            instructions += 1;
            left -= u32::from(reach.of == Some(at));
            let Some(next) = next_address(&insn, &state) else { break };
            step(&insn, &mut state, Some(&mut memory));
            at = next;
        }
        self.accesses = found;
        Ahead { accesses: &self.accesses, instructions }
    }

    /// Drops what is kept of code that was unmapped or rewritten.
    pub fn forget(&mut self, range: Range<u64>) {
        self.decoded.retain(|at, _| !range.contains(at));
        self.labels.clear();
    }

    fn at(&mut self, at: u64, space: &dyn AddressSpace) -> Option<Decoded> {
        if let Some(known) = self.decoded.get(&at) {
            return *known;
        }
        let mut bytes = [0; LENGTH as usize];
        if !at.is_multiple_of(LENGTH) || space.code(at, &mut bytes) < bytes.len() {
            return None;
        }
        if self.decoded.len() >= MAX_DECODED {
            self.decoded.clear();
        }
        let decoded = Decoded::new(bytes, at);
        self.decoded.insert(at, decoded);
        decoded
    }

    /// The instructions before an address that control fell through, the nearest first; `None` if the nearest
    /// cannot be read.
    fn path(&mut self, pc: u64, space: &dyn AddressSpace) -> Option<Vec<Decoded>> {
        let mut found = Vec::new();
        for back in 1..=DEPTH {
            let Some(insn) = pc.checked_sub(back * LENGTH).and_then(|at| self.at(at, space)) else {
                return if back == 1 { None } else { Some(found) };
            };
            if !matches!(insn.flow, Flow::Next | Flow::Conditional(_)) {
                break;
            }
            found.push(insn);
            if self.is_label(insn.address, space) {
                break;
            }
        }
        Some(found)
    }

    /// Whether a jump nearby leads to this address.
    fn is_label(&mut self, target: u64, space: &dyn AddressSpace) -> bool {
        if let Some(known) = self.labels.get(&target) {
            return *known;
        }
        let from = target.saturating_sub(REACH) & !(LENGTH - 1);
        let mut buffer = vec![0; 2 * REACH as usize];
        let count = space.code(from, &mut buffer);
        let words = buffer[..count].chunks_exact(LENGTH as usize).zip((0u64..).map(|n| from + n * LENGTH));
        let found = words.into_iter().any(|(bytes, at)| {
            let word = bytes.iter().rev().fold(0u32, |word, byte| word << 8 | u32::from(*byte));
            jump_target(word, at) == Some(target)
        });
        self.labels.insert(target, found);
        found
    }

    /// Whether a jump led to this address: it is a label, and the registers do not agree with the instruction before it.
    fn jumped_here(&mut self, insn: &Decoded, after: &State, pc: u64, space: &dyn AddressSpace) -> bool {
        if let (Flow::Conditional(to), Opcode::Bcc(condition), Some(flags)) =
            (insn.flow, insn.raw.opcode, after.flags)
        {
            return to != pc && fulfils(flags, condition);
        }
        if insn.written == 0 || !self.is_label(pc, space) {
            return false;
        }
        let mut again = undo(insn, &mut after.clone(), None);
        step(insn, &mut again, Some(&mut Memory::new(space, 2)));
        (0..32).any(|n| again.get(n).zip(after.get(n)).is_some_and(|(new, old)| new != old))
    }

    /// Direct, slice, slice with loads, next and object.
    fn operand(
        &mut self,
        path: &[Decoded],
        index: usize,
        place: &Place,
        after: &State,
        pc: u64,
        space: &dyn AddressSpace,
    ) -> Operand {
        let Some(insn) = path.get(index) else { return Operand::Unknown { instruction: pc, kind: None } };
        let kept = path.iter().take(index + 1).all(|i| i.written & registers(place) == 0);
        let mut loads = Memory::new(space, LOADS);
        if let Some(at) = slice(path, index, place, after, None).and_then(|s| address(place, &s)) {
            return memory(insn, place, at, if kept { RecoveryRule::Direct } else { RecoveryRule::Slice });
        }
        if let Some(at) = slice(path, index, place, after, Some(&mut loads)).and_then(|s| address(place, &s))
        {
            return memory(
                insn,
                place,
                at,
                if loads.used { RecoveryRule::SliceLoad } else { RecoveryRule::Slice },
            );
        }
        if let Some((at, rule)) = self.next_execution(insn, place, after, pc, space) {
            return Operand::Memory(access(insn, place, at, rule));
        }
        let part = Place { index: None, ..*place };
        let base = slice(path, index, &part, after, Some(&mut loads)).and_then(|s| address(&part, &s));
        match base {
            Some(base) if loads.is_mapped(base) => {
                Operand::Object { instruction: insn.address, base, kind: place.kind }
            }
            _ => Operand::Unknown { instruction: insn.address, kind: Some(place.kind) },
        }
    }

    /// The address of the instruction's next execution.
    fn next_execution(
        &mut self,
        waiting: &Decoded,
        place: &Place,
        after: &State,
        pc: u64,
        space: &dyn AddressSpace,
    ) -> Option<(u64, RecoveryRule)> {
        let (mut state, mut memory, mut at) = (*after, Memory::new(space, LOADS), pc);
        for _ in 0..MAX_TO_NEXT {
            if at == waiting.address {
                let chained = match place.base {
                    Base::Register(base) => {
                        waiting.written >> base & 1 == 1 && state.get(base) == after.get(base)
                    }
                    Base::Address(_) => false,
                };
                let rule = if chained { RecoveryRule::Chain } else { RecoveryRule::Next };
                return address(place, &state).map(|at| (at, rule));
            }
            let insn = self.at(at, space)?;
            let next = next_address(&insn, &state)?;
            step(&insn, &mut state, Some(&mut memory));
            at = next;
        }
        None
    }
}

/// The state of the registers before `path[index]`, if the address of `place` is known by it.
fn slice(
    path: &[Decoded],
    index: usize,
    place: &Place,
    after: &State,
    mut memory: Option<&mut Memory<'_>>,
) -> Option<State> {
    let mut points = Vec::with_capacity(path.len());
    let mut state = *after;
    for (depth, insn) in path.iter().enumerate() {
        state = undo(insn, &mut state, memory.as_deref_mut());
        points.push(state);
        if depth == index && address(place, &state).is_some() {
            return Some(state);
        }
    }
    for (depth, insn) in path.iter().enumerate().skip(index + 1).rev() {
        step(insn, &mut state, memory.as_deref_mut());
        state.merge(points.get(depth - 1)?);
    }
    address(place, &state).map(|_| state)
}

/// The address at which an instruction continues, if the registers tell.
fn next_address(insn: &Decoded, state: &State) -> Option<u64> {
    let behind = insn.address.wrapping_add(LENGTH);
    match insn.flow {
        Flow::Next => Some(behind),
        Flow::Jump(to) => Some(to),
        Flow::Conditional(to) => takes(insn, state).map(|takes| if takes { to } else { behind }),
        Flow::Call | Flow::Elsewhere => None,
    }
}

fn takes(insn: &Decoded, state: &State) -> Option<bool> {
    let parts = &insn.raw.operands;
    let bit = |at: usize| match parts[at] {
        Part::Imm16(bit) => Some(u32::from(bit)),
        Part::Immediate(bit) => Some(bit),
        _ => None,
    };
    match insn.raw.opcode {
        Opcode::Bcc(condition) => state.flags.map(|flags| fulfils(flags, condition)),
        Opcode::CBZ => state.value(&parts[0]).map(|v| v == 0),
        Opcode::CBNZ => state.value(&parts[0]).map(|v| v != 0),
        Opcode::TBZ => Some(state.value(&parts[0])?.checked_shr(bit(1)?)? & 1 == 0),
        Opcode::TBNZ => Some(state.value(&parts[0])?.checked_shr(bit(1)?)? & 1 == 1),
        _ => None,
    }
}

/// The target of a direct jump, from its bits.
fn jump_target(word: u32, at: u64) -> Option<u64> {
    let signed = |bits: u32, from: u32| i64::from((word << (32 - bits - from)) as i32 >> (32 - bits)) * 4;
    let offset = if word & 0xfc00_0000 == 0x1400_0000 {
        signed(26, 0)
    } else if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 {
        signed(19, 5)
    } else if word & 0x7e00_0000 == 0x3600_0000 {
        signed(14, 5)
    } else {
        return None;
    };
    Some(at.wrapping_add(offset as u64))
}

/// Bits of the registers of an address.
fn registers(place: &Place) -> u32 {
    let base = match place.base {
        Base::Register(base) => 1 << (base & 31),
        Base::Address(_) => 0,
    };
    base | place.index.map_or(0, |index| if index.register < 31 { 1 << index.register } else { 0 })
}

fn access(insn: &Decoded, place: &Place, at: u64, rule: RecoveryRule) -> MemoryAccess {
    MemoryAccess { instruction: insn.address, address: at, size: place.size, kind: place.kind, rule }
}

/// An operand with an exact address, with the rule that tables count for it.
fn memory(insn: &Decoded, place: &Place, at: u64, found: RecoveryRule) -> Operand {
    let stack = place.base == Base::Register(SP) && place.writeback.is_some();
    let rule = match place.kind {
        AccessKind::Prefetch => RecoveryRule::Prefetch,
        _ if stack => RecoveryRule::Stack,
        _ => found,
    };
    Operand::Memory(access(insn, place, at, rule))
}
